// SPDX-License-Identifier: Apache-2.0
// Commands over time: each in the lowest lane that is free. Drag zooms, arrows move, + - 0 zoom, Enter opens.
import { FAILED, INK, OTHER, Surface, barText, colourOf, el, legend, number, swatch, time } from "./show.js";

const AXIS = 22, USE = 34, SLACK = 2;

// lanes in which no two commands overlap; the lowest free one is found in a heap of lane numbers
export function packLanes(data) {
  const lane = new Uint32Array(data.n), ends = [];
  for (let i = 0; i < data.n; i++) { // in order of start
    let at = 0;
    while (at < ends.length && ends[at] > data.start[i]) at++;
    ends[at] = data.start[i] + data.elapsed[i]; lane[i] = at;
  }
  return { lane, n: ends.length };
}

export class Timeline {
  constructor(data, details) {
    Object.assign(this, { data, details, from: 0, to: data.end || 1, found: null, hot: -1, drag: null, criticalOnly: false });
    const { lane, n } = packLanes(data);
    this.lane = lane; this.nLanes = n;
    this.lanes = Array.from({ length: n }, () => []);
    for (let i = 0; i < data.n; i++) this.lanes[lane[i]].push(i);
    this.laneHeight = Math.max(4, Math.min(17, Math.floor(520 / Math.max(1, n))));
    this.surface = new Surface("timeline of commands; drag to zoom, arrow keys move, plus and minus zoom, 0 shows all, n goes to the next match", (c, w, h) => this.draw(c, w, h));
    this.surface.height = AXIS + USE + n * this.laneHeight + 4;
    this.tip = el("p", { class: "tip", "aria-live": "polite" }, "\u00a0");
    this.legend = el("ul", { class: "legend", "aria-label": "colours" });
    this.listen(this.surface.canvas);
    this.colourBy("program");
    details.onChange(() => this.surface.ask());
  }
  choices() {
    const d = this.data, program = { program: [i => d.program[i], v => d.text(v)] };
    return { ...program, class: [i => d.class[i], v => d.meta.classes[v]], status: null,
      directory: [i => d.cwd[i], v => d.relative(d.text(v))], ...(d.target ? { target: [i => d.target[i], v => d.text(v) || "not known"] } : {}) };
  }
  colourBy(name) {
    const choice = this.choices()[name], d = this.data;
    this.colours = choice ? legend(d, ...choice)
      : { of: i => d.status[i] > 0 ? FAILED : d.status[i] === 0 ? "#95d5b2" : OTHER, shown: [["status 0", "#95d5b2"], ["another status", FAILED], ["not known", OTHER]] };
    this.legend.replaceChildren(...this.colours.shown.map(([text, colour]) => el("li", {}, swatch(colour), text)));
    this.surface.ask();
  }
  search(word) { this.found = this.data.commandsMatching(word); this.surface.ask(); return this.found; }
  show(from, to) {
    const span = Math.max(1000, Math.min(this.data.end || 1, to - from));
    this.from = Math.max(0, Math.min(from, this.data.end - span)); this.to = this.from + span;
    this.surface.ask();
  }
  zoom(factor, at = (this.from + this.to) / 2) { this.show(at - (at - this.from) * factor, at + (this.to - at) * factor); }
  x(ns, width) { return (ns - this.from) / (this.to - this.from) * width; }
  ns(x) { return this.from + x / this.surface.width * (this.to - this.from); }
  at(x, y) {
    const own = this.lanes[Math.floor((y - AXIS - USE) / this.laneHeight)];
    if (!own) return -1;
    const d = this.data, t = this.ns(x), near = (this.to - this.from) / this.surface.width * SLACK;
    let low = 0, high = own.length;
    while (low < high) { const mid = low + high >> 1; if (d.start[own[mid]] <= t + near) low = mid + 1; else high = mid; }
    const i = low ? own[low - 1] : -1;
    return i >= 0 && d.start[i] + d.elapsed[i] >= t - near ? i : -1;
  }
  draw(c, width, height) {
    const ink = colourOf("--soft"), line = colourOf("--line");
    c.clearRect(0, 0, width, height);
    this.drawUse(c, width);
    this.drawAxis(c, width, height, ink, line);
    for (let lane = 0; lane < this.nLanes; lane++) this.drawLane(c, width, lane);
    for (const i of [this.hot, this.details.chosen]) if (i >= 0) this.outline(c, i, width, colourOf("--selected"), 2);
    if (this.drag) { c.globalAlpha = .25; c.fillStyle = colourOf("--accent"); c.fillRect(Math.min(...this.drag), 0, Math.abs(this.drag[1] - this.drag[0]), height); c.globalAlpha = 1; }
  }
  drawAxis(c, width, height, ink, line) {
    const rough = (this.to - this.from) / Math.max(2, width / 110), power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(k => k * power).find(k => k >= rough);
    c.fillStyle = ink; c.strokeStyle = line; c.lineWidth = 1; c.beginPath();
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = Math.round(this.x(t, width)) + .5;
      c.moveTo(x, 0); c.lineTo(x, height); c.fillText(time(t), x + 3, AXIS / 2);
    }
    c.stroke();
  }
  // how many commands ran that had started no other: one column a pixel
  drawUse(c, width) {
    const d = this.data, n = Math.ceil(width), change = new Int32Array(n + 2);
    this.isLeaf ??= this.leaves();
    for (let i = 0; i < d.n; i++) {
      if (!this.isLeaf[i]) continue;
      const a = this.x(d.start[i], width), b = this.x(d.start[i] + d.elapsed[i], width);
      if (b < 0 || a > n) continue;
      change[Math.max(0, Math.floor(a))]++; change[Math.min(n, Math.max(0, Math.floor(b)) + 1)]--;
    }
    let now = 0, most = 1;
    const use = new Int32Array(n);
    for (let x = 0; x < n; x++) { now += change[x]; use[x] = now; most = Math.max(most, now); }
    c.fillStyle = colourOf("--accent"); c.globalAlpha = .45;
    for (let x = 0; x < n; x++) if (use[x]) { const h = use[x] / most * (USE - 6); c.fillRect(x, AXIS + USE - 3 - h, 1, h); }
    c.globalAlpha = 1; c.fillStyle = colourOf("--soft");
    c.fillText(`at most ${number(most)} at once`, 4, AXIS + 7);
  }
  leaves() {
    const leaf = new Uint8Array(this.data.n).fill(1);
    for (const p of this.data.parent) if (p >= 0) leaf[p] = 0;
    return leaf;
  }
  drawLane(c, width, lane) {
    const d = this.data, y = AXIS + USE + lane * this.laneHeight, h = this.laneHeight - 1;
    let done = -1;
    for (const i of this.lanes[lane]) {
      const a = this.x(d.start[i], width), b = this.x(d.start[i] + d.elapsed[i], width);
      if (b < 0) continue;
      if (a > width) break;
      const isCritical = d.critical?.[i], isFound = this.found && this.found[i];
      if (b < done && !isCritical && !isFound) continue; // nothing of it would be seen
      const left = Math.max(a, -1), w = Math.max(1, Math.min(b, width + 1) - left);
      c.globalAlpha = (this.found && !isFound) || (this.criticalOnly && !isCritical) ? .18 : 1;
      c.fillStyle = this.colours.of(i); c.fillRect(left, y, w > 3 ? w - .5 : w, h);
      if (h >= 11) { c.fillStyle = INK; if (c.globalAlpha === 1) barText(c, d.text(d.label[i]), Math.max(left, 0), y + h / 2 + .5, w + Math.min(0, left)); }
      if (isCritical) { c.globalAlpha = 1; this.outline(c, i, width, colourOf("--critical"), 2); }
      done = Math.ceil(b);
    }
    c.globalAlpha = 1;
  }
  outline(c, i, width, colour, thick) {
    const d = this.data, a = this.x(d.start[i], width), b = this.x(d.start[i] + d.elapsed[i], width);
    c.strokeStyle = colour; c.lineWidth = thick;
    c.strokeRect(a, AXIS + USE + this.lane[i] * this.laneHeight, Math.max(1, b - a), this.laneHeight - 1);
  }
  hover(i) {
    if (i === this.hot) return;
    this.hot = i;
    const d = this.data;
    this.tip.textContent = i < 0 ? "\u00a0" : `${d.text(d.label[i])}  ${time(d.elapsed[i])}${d.cpu ? `, CPU ${time(d.cpu[i])}` : ""}, status ${d.status[i] < 0 ? "not known" : d.status[i]}  ${d.commandLine(i).slice(0, 300)}`;
    this.surface.ask();
  }
  listen(canvas) {
    canvas.addEventListener("pointerdown", e => { const [x] = this.surface.place(e); this.drag = [x, x]; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", e => {
      const [x, y] = this.surface.place(e);
      if (this.drag) { this.drag[1] = x; this.surface.ask(); } else this.hover(this.at(x, y));
    });
    canvas.addEventListener("pointerup", e => {
      const [x, y] = this.surface.place(e), [a, b] = this.drag ?? [x, x];
      this.drag = null;
      if (Math.abs(b - a) > 5) this.show(this.ns(Math.min(a, b)), this.ns(Math.max(a, b)));
      else { const i = this.at(x, y); if (i >= 0) this.details.select(i); }
      this.surface.ask();
    });
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    canvas.addEventListener("dblclick", () => this.show(0, this.data.end));
    canvas.addEventListener("wheel", e => {
      if (!e.ctrlKey && !e.shiftKey) return; // a plain wheel scrolls the page
      e.preventDefault();
      if (e.ctrlKey) this.zoom(e.deltaY > 0 ? 1.25 : .8, this.ns(this.surface.place(e)[0]));
      else this.move((e.deltaY || e.deltaX) / 800);
    }, { passive: false });
    canvas.addEventListener("keydown", e => this.key(e));
  }
  move(part) { const by = part * (this.to - this.from); this.show(this.from + by, this.to + by); }
  key(e) {
    const does = { ArrowLeft: () => this.move(-.2), ArrowRight: () => this.move(.2), "+": () => this.zoom(.5), "=": () => this.zoom(.5), "-": () => this.zoom(2),
      0: () => this.show(0, this.data.end), n: () => this.next(1), p: () => this.next(-1), Enter: () => this.hot >= 0 && this.details.select(this.hot) }[e.key];
    if (!does || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault(); does();
  }
  next(step) {
    let i = this.hot;
    for (let k = 0; k < this.data.n; k++) {
      i = (i + step + this.data.n) % this.data.n;
      if (!this.found || this.found[i]) break;
    }
    this.hover(i);
    const d = this.data, middle = d.start[i] + d.elapsed[i] / 2;
    if (middle < this.from || middle > this.to) this.show(middle - (this.to - this.from) / 2, middle + (this.to - this.from) / 2);
  }
}
