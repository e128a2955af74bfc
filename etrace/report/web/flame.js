// SPDX-License-Identifier: Apache-2.0
// The process tree as a flame graph: commands of one program below one stack are one frame.
import { INK, OTHER, PALETTE, Surface, barText, colourOf, el, number, time } from "./show.js";

const HEIGHT = 19;

// wall time of a command itself: none of its children ran
function ownWall(d) {
  const own = new Float64Array(d.n);
  for (let i = 0; i < d.n; i++) {
    const end = d.start[i] + d.elapsed[i];
    let covered = 0, until = d.start[i];
    for (const child of d.children(i)) { // in order of start
      const a = Math.max(until, d.start[child]), b = Math.min(end, d.start[child] + d.elapsed[child]);
      if (b > a) { covered += b - a; until = b; }
    }
    own[i] = Math.max(0, d.elapsed[i] - covered);
  }
  return own;
}

export function flameTree(d, weight) {
  const root = { name: "all", total: 0, count: 0, depth: 0, up: null, below: new Map(), some: -1 }, frames = new Array(d.n);
  for (let i = 0; i < d.n; i++) { // a parent starts before its children
    const up = d.parent[i] >= 0 && frames[d.parent[i]] ? frames[d.parent[i]] : root;
    let frame = up.below.get(d.program[i]);
    if (!frame) up.below.set(d.program[i], frame = { name: d.text(d.program[i]), program: d.program[i], total: 0, count: 0, depth: up.depth + 1, up, below: new Map(), some: i });
    frames[i] = frame; frame.count++;
    for (let f = frame; f; f = f.up) f.total += weight[i];
  }
  return root;
}

export class Flame {
  constructor(data, details) {
    Object.assign(this, { data, details, boxes: [], hot: null, word: "" });
    this.surface = new Surface("flame graph of the process tree; arrow keys choose a frame, Enter zooms into it, Escape zooms out", (c, w, h) => this.draw(c, w, h));
    this.tip = el("p", { class: "tip", "aria-live": "polite" }, "\u00a0");
    this.weigh("wall");
    const canvas = this.surface.canvas;
    canvas.addEventListener("pointermove", e => this.hover(this.at(...this.surface.place(e))));
    canvas.addEventListener("click", e => { const f = this.at(...this.surface.place(e)); if (f) this.zoom(f); });
    canvas.addEventListener("keydown", e => this.key(e));
  }
  weigh(name) {
    this.root = flameTree(this.data, name === "cpu" ? this.data.cpu.map(ns => Math.max(0, ns)) : ownWall(this.data));
    this.zoom(this.root);
  }
  search(word) { this.word = word.toLowerCase(); this.surface.ask(); }
  zoom(frame) { this.top = frame; this.hover(frame); this.layOut(); this.surface.ask(); }
  layOut() {
    this.boxes = [];
    for (let f = this.top.up; f; f = f.up) this.boxes.push({ f, left: 0, part: 1, isAbove: true });
    const rest = [[this.top, 0, 1]];
    while (rest.length) {
      const [f, left, part] = rest.pop();
      this.boxes.push({ f, left, part });
      let at = left;
      for (const child of [...f.below.values()].sort((a, b) => b.total - a.total)) {
        const own = f.total ? part * child.total / f.total : 0;
        if (own > 2e-4) rest.push([child, at, own]);
        at += own;
      }
    }
    this.surface.height = (Math.max(...this.boxes.map(b => b.f.depth)) + 1) * HEIGHT + 2;
  }
  at(x, y) {
    const depth = Math.floor(y / HEIGHT), part = x / this.surface.width;
    return this.boxes.find(b => b.f.depth === depth && part >= b.left && part < b.left + b.part)?.f ?? null;
  }
  hover(f) {
    if (!f || f === this.hot) return;
    this.hot = f;
    const part = this.root.total ? (100 * f.total / this.root.total).toFixed(1) : "0";
    this.tip.textContent = `${f.name}: ${time(f.total)} (${part} %), ${number(f.count)} ${f.count === 1 ? "command" : "commands"}`;
    this.surface.ask();
  }
  draw(c, width) {
    c.clearRect(0, 0, width, this.surface.height);
    for (const { f, left, part, isAbove } of this.boxes) {
      const x = left * width, w = part * width, y = f.depth * HEIGHT;
      const isDim = isAbove || (this.word && !f.name.toLowerCase().includes(this.word));
      c.globalAlpha = isDim ? .35 : 1;
      c.fillStyle = f.up ? PALETTE[f.program % PALETTE.length] : OTHER;
      c.fillRect(x, y, Math.max(.5, w - 1), HEIGHT - 1);
      c.globalAlpha = 1; c.fillStyle = isDim ? colourOf("--text") : INK;
      barText(c, f.name, x, y + HEIGHT / 2, w);
      if (f === this.hot) { c.strokeStyle = colourOf("--selected"); c.lineWidth = 2; c.strokeRect(x + 1, y + 1, Math.max(1, w - 3), HEIGHT - 3); }
    }
  }
  key(e) {
    const f = this.hot ?? this.top, beside = [...(f.up?.below.values() ?? [])].sort((a, b) => b.total - a.total), at = beside.indexOf(f);
    const to = { ArrowDown: [...f.below.values()].sort((a, b) => b.total - a.total)[0], ArrowUp: f.up, ArrowRight: beside[at + 1], ArrowLeft: beside[at - 1] }[e.key];
    if (to) { e.preventDefault(); this.hover(to); }
    if (e.key === "Enter") this.zoom(f);
    if (e.key === "Escape") this.zoom(this.root);
  }
}
