// SPDX-License-Identifier: Apache-2.0
// The process tree as a flame graph: commands of one program below one stack are one frame.
import { addPart, choice, remark, searchBox } from "../parts.js";
import { INK, OTHER, Surface, barText, colourOf, el, number, programColours, spokenTable, time } from "../show.js";

const HEIGHT = 22, READABLE = 44; // px: of a row; narrower frames are put together

export function flameTree(d, weight) {
  const root = { name: "all", total: 0, count: d.n, depth: 0, up: null, below: new Map(), some: -1 }, frames = new Array(d.n);
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
    this.root = flameTree(this.data, name === "cpu" ? this.data.cpu.map(ns => Math.max(0, ns)) : this.data.ownTimes());
    this.zoom(this.root);
  }
  search(word) { this.word = word.toLowerCase(); this.surface.ask(); }
  zoom(frame) { this.top = frame; this.hover(frame); this.layOut(); this.surface.ask(); }
  layOut(width = this.surface.width) {
    this.boxes = []; this.width = width;
    for (let f = this.top.up; f; f = f.up) this.boxes.push({ f, left: 0, part: 1, isAbove: true });
    const rest = [[this.top, 0, 1]];
    while (rest.length) {
      const [f, left, part] = rest.pop();
      if (f.others) { this.beside(f.others, f, left, part, rest, width); continue; }
      this.boxes.push({ f, left, part });
      this.beside([...f.below.values()], f, left, part, rest, width);
    }
    this.surface.height = (Math.max(...this.boxes.map(b => b.f.depth)) + 1) * HEIGHT + 2;
  }
  // frames below one frame, the widest first; those too narrow to read are one, which a click opens
  beside(frames, up, left, part, rest, width) {
    const sorted = frames.filter(f => f.total > 0).sort((a, b) => b.total - a.total), share = f => up.total ? part * f.total / up.total : 0;
    let n = sorted.findIndex(f => share(f) * width < READABLE);
    if (n < 0 || sorted.length - n < 2 || n + 1 === sorted.length || (up.others && n === 0)) n = sorted.length;
    let at = left;
    for (const f of sorted.slice(0, n)) { rest.push([f, at, share(f)]); at += share(f); }
    if (n === sorted.length) return;
    const others = sorted.slice(n), total = others.reduce((sum, f) => sum + f.total, 0), count = others.reduce((sum, f) => sum + f.count, 0);
    const one = { name: `${others.length} others`, total, count, depth: others[0].depth, up: up.others ? up.up : up, below: new Map(), others };
    this.boxes.push({ f: one, left: at, part: up.total ? part * total / up.total : 0 });
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
    if (width !== this.width) { this.layOut(width); this.surface.ask(); }
    c.clearRect(0, 0, width, this.surface.height);
    const colours = programColours(this.data);
    for (const { f, left, part, isAbove } of this.boxes) {
      const x = left * width, w = part * width, y = f.depth * HEIGHT;
      const isDim = isAbove || (this.word && !f.name.toLowerCase().includes(this.word));
      c.globalAlpha = isDim ? .35 : 1;
      c.fillStyle = f.up && !f.others ? colours.ofValue(f.program) : OTHER;
      c.fillRect(x, y, Math.max(.5, w - 1), HEIGHT - 1);
      c.globalAlpha = 1; c.fillStyle = isDim ? colourOf("--text") : INK;
      barText(c, f.name, x, y + HEIGHT / 2, w);
      if (f === this.hot) { c.strokeStyle = colourOf("--selected"); c.lineWidth = 2; c.strokeRect(x + 1, y + 1, Math.max(1, w - 3), HEIGHT - 3); }
    }
  }
  key(e) {
    const f = this.hot ?? this.top, near = this.boxes.find(b => b.f === f) ?? this.boxes[0];
    const row = depth => this.boxes.filter(b => b.f.depth === depth).sort((a, b) => a.left - b.left), own = row(near.f.depth), at = own.indexOf(near);
    const below = row(near.f.depth + 1).filter(b => b.left >= near.left - 1e-9 && b.left < near.left + near.part);
    const to = { ArrowDown: below[0]?.f, ArrowUp: f.up, ArrowRight: own[at + 1]?.f, ArrowLeft: own[at - 1]?.f }[e.key];
    if (to) { e.preventDefault(); this.hover(to); }
    if (e.key === "Enter") this.zoom(f);
    if (e.key === "Escape") this.zoom(this.root);
  }
}

addPart({ id: "flame", title: "Process tree", make: ({ data, details, handles }) => {
  const flame = handles.flame = new Flame(data, details), weights = [["wall", "wall time"], ...(data.cpu ? [["cpu", "CPU time"]] : [])];
  const controls = [searchBox("search programs", word => flame.search(word)), choice("width", weights, name => flame.weigh(name)),
    el("button", { type: "button", onclick: () => flame.zoom(flame.root) }, "all")];
  const help = remark(`A frame is a program below the programs that started it. Its width is the wall time of its commands while none of their children ran ("wall time of own"), `
    + "with that of all frames below it. Commands that ran at once add up, so the whole can be longer than the build took. "
    + (data.cpu ? "CPU time is what they used a processor for. " : "The trace holds no CPU times. ") + "Frames too narrow to read are put together; a click opens them.");
  const own = data.ownTimes(), programs = new Map();
  for (let i = 0; i < data.n; i++) {
    const one = programs.get(data.program[i]) ?? [0, 0];
    programs.set(data.program[i], [one[0] + 1, one[1] + own[i]]);
  }
  const spoken = spokenTable("own time by program", ["program", "commands", "own time"],
    [...programs].sort((a, b) => b[1][1] - a[1][1]).slice(0, 20).map(([program, [n, ns]]) => [data.text(program), number(n), time(ns)]));
  return { controls, content: [spoken, flame.surface.box, flame.tip, help] };
} });
