// SPDX-License-Identifier: Apache-2.0
// Commands over time: each in the lowest lane that is free. Drag zooms, arrows move, + - 0 zoom, Enter opens.
import { addPart, choice, remark, searchBox } from "../parts.js";
import { FAILED, INK, OTHER, Surface, barText, colourOf, el, legend, number, programColours, spokenTable, statusText, swatch, time } from "../show.js";

const DONE = "#95d5b2", SPOKEN = 30;
const AXIS = 22, USE = 34, SLACK = 2, OUTLINED = 4;

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

// commands that had started no other -> how many ran from each time on
export function stepsOf(d) {
  const leaf = d.leaves(), own = [];
  for (let i = 0; i < d.n; i++) if (leaf[i] && d.elapsed[i] > 0) own.push(i);
  const starts = Float64Array.from(own, i => d.start[i]).sort(), ends = Float64Array.from(own, i => d.start[i] + d.elapsed[i]).sort();
  const at = [], many = [];
  for (let s = 0, e = 0; e < ends.length;) {
    const now = s < starts.length ? Math.min(starts[s], ends[e]) : ends[e];
    while (e < ends.length && ends[e] === now) e++;
    while (s < starts.length && starts[s] === now) s++;
    at.push(now); many.push(s - e);
  }
  return { at, many };
}

export class Timeline {
  constructor(data, details) {
    Object.assign(this, { data, details, from: 0, to: data.end || 1, found: null, hot: -1, drag: null, criticalOnly: false });
    const { lane, n } = packLanes(data);
    this.lane = lane; this.nLanes = n; this.running = stepsOf(data);
    this.path = data.critical ? Array.from(data.critical.keys()).filter(i => data.critical[i] && data.leaves()[i]) : [];
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
    const d = this.data;
    return { program: programColours(d), class: () => legend(d, i => d.class[i], v => d.meta.classes[v]), status: () => ({ of: i => d.status[i] ? OTHER : DONE, shown: [["status 0", DONE], ["none, or not known", OTHER]] }),
      directory: () => legend(d, i => d.cwd[i], v => d.relative(d.text(v))), ...(d.target ? { target: () => legend(d, i => d.target[i], v => d.text(v) || "not known") } : {}) };
  }
  colourBy(name) {
    const choice = this.choices()[name], d = this.data;
    this.colours = typeof choice === "function" ? choice() : choice;
    const shown = [...this.colours.shown];
    if (d.status.some(status => status > 0)) shown.push(["status other than 0", FAILED]);
    if (d.critical) shown.push(["critical path", colourOf("--critical")]);
    this.legend.replaceChildren(...shown.map(([text, colour]) => el("li", {}, swatch(colour), text)));
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
    const critical = colourOf("--critical");
    for (let lane = 0; lane < this.nLanes; lane++) this.drawLane(c, width, lane, critical);
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
  // how many commands ran that had started no other; a column shows the most of its time
  drawUse(c, width) {
    const n = Math.ceil(width), use = new Uint32Array(n), most = Math.max(1, this.mostAtOnce()), { at, many } = this.running;
    let k = this.stepAt(this.from), now = k < 0 ? 0 : many[k];
    for (let x = 0; x < n; x++) {
      use[x] = now;
      const end = this.ns(x + 1);
      while (k + 1 < at.length && at[k + 1] < end) { now = many[++k]; use[x] = Math.max(use[x], now); }
    }
    c.fillStyle = colourOf("--accent"); c.globalAlpha = .45;
    for (let x = 0; x < n; x++) if (use[x]) { const h = use[x] / most * (USE - 10); c.fillRect(x, AXIS + USE - 7 - h, 1, h); }
    c.globalAlpha = 1;
    this.drawPath(c, width);
    const text = `at most ${number(this.mostAtOnce())} at once`;
    c.fillStyle = colourOf("--back"); c.fillRect(2, AXIS, c.measureText(text).width + 6, 15);
    c.fillStyle = colourOf("--text"); c.fillText(text, 5, AXIS + 8);
  }
  drawPath(c, width) { // where the critical path was in commands that had started no other
    const d = this.data;
    if (!d.critical) return;
    c.fillStyle = colourOf("--critical");
    for (const i of this.path) {
      const a = this.x(d.start[i], width), b = this.x(d.start[i] + d.elapsed[i], width);
      if (b >= 0 && a <= width) c.fillRect(a, AXIS + USE - 5, Math.max(1, b - a), 4);
    }
  }
  stepAt(ns) { // the last step that begins no later
    const { at } = this.running;
    let low = 0, high = at.length;
    while (low < high) { const mid = low + high >> 1; if (at[mid] <= ns) low = mid + 1; else high = mid; }
    return low - 1;
  }
  mostAtOnce() { // in what is shown
    const { at, many } = this.running;
    let k = Math.max(0, this.stepAt(this.from)), most = 0;
    for (; k < at.length && at[k] < this.to; k++) most = Math.max(most, many[k]);
    return most;
  }
  drawLane(c, width, lane, critical) {
    const d = this.data, y = AXIS + USE + lane * this.laneHeight, h = this.laneHeight - 1, own = this.lanes[lane];
    let done = -1;
    for (let k = this.firstIn(own); k < own.length; k++) {
      const i = own[k], a = this.x(d.start[i], width), b = this.x(d.start[i] + d.elapsed[i], width);
      if (a > width) break;
      const isFound = this.found && this.found[i];
      if (b < done && !isFound) continue; // nothing of it would be seen
      const left = Math.max(a, -1), w = Math.max(1, Math.min(b, width + 1) - left);
      c.globalAlpha = (this.found && !isFound) || (this.criticalOnly && !d.critical[i]) ? .18 : 1;
      c.fillStyle = this.fill(i); c.fillRect(left, y, w > 3 ? w - .5 : w, h);
      if (h >= 11 && c.globalAlpha === 1) { c.fillStyle = INK; barText(c, d.text(d.label[i]), Math.max(left, 0), y + h / 2 + .5, w + Math.min(0, left)); }
      if (this.isOutlined(i, b - a)) { c.globalAlpha = 1; this.outline(c, i, width, critical, 2); }
      done = Math.ceil(b);
    }
    c.globalAlpha = 1;
  }
  firstIn(own) { // the first command of a lane that ends in what is shown or later
    const d = this.data;
    let low = 0, high = own.length;
    while (low < high) { const mid = low + high >> 1; if (d.start[own[mid]] + d.elapsed[own[mid]] < this.from) low = mid + 1; else high = mid; }
    return low;
  }
  isFailed(i) { return this.data.status[i] > 0; }
  fill(i) { return this.isFailed(i) ? FAILED : this.colours.of(i); }
  // those that started others hold the rest of the path; narrower ones are in the line above the lanes
  isOutlined(i, w) { return Boolean(this.data.critical?.[i]) && this.data.leaves()[i] === 1 && w >= OUTLINED; }
  outline(c, i, width, colour, thick) {
    const d = this.data, a = this.x(d.start[i], width), b = this.x(d.start[i] + d.elapsed[i], width);
    c.strokeStyle = colour; c.lineWidth = thick;
    c.strokeRect(a, AXIS + USE + this.lane[i] * this.laneHeight, Math.max(1, b - a), this.laneHeight - 1);
  }
  hover(i) {
    if (i === this.hot) return;
    this.hot = i;
    const d = this.data;
    this.tip.textContent = i < 0 ? "\u00a0" : `${d.text(d.label[i])}  ${time(d.elapsed[i])}${d.cpu ? `, CPU ${time(d.cpu[i])}` : ""}, status ${statusText(d.status[i])}  ${d.commandLine(i).slice(0, 300)}`;
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

addPart({ id: "timeline", title: "Timeline", make: ({ data, details, handles }) => {
  const timeline = handles.timeline = new Timeline(data, details), matched = el("span", { class: "soft", "aria-live": "polite" });
  const search = searchBox("search commands", word => {
    const found = timeline.search(word);
    matched.textContent = found ? `${number(found.reduce((a, b) => a + b, 0))} match` : "";
  });
  const names = Object.keys(timeline.choices()).map(name => [name, name]);
  const button = (label, text, does) => el("button", { type: "button", "aria-label": label, title: label, onclick: does }, text);
  const controls = [search, matched, choice("colour by", names, name => timeline.colourBy(name)),
    button("zoom in", "+", () => timeline.zoom(.5)), button("zoom out", "\u2212", () => timeline.zoom(2)), button("show all", "all", () => timeline.show(0, data.end))];
  if (data.critical) {
    const box = el("input", { type: "checkbox", onchange: () => { timeline.criticalOnly = box.checked; timeline.surface.ask(); } });
    controls.push(el("label", {}, box, " critical path only"));
  }
  const own = data.ownTimes(), longest = Array.from(own.keys()).sort((a, b) => own[b] - own[a]).slice(0, SPOKEN).sort((a, b) => a - b);
  const spoken = spokenTable(`the ${longest.length} commands with the longest own times, by start; at most ${timeline.mostAtOnce()} ran at once`, ["command", "start", "time", "own time", "status"],
    longest.map(i => [data.text(data.label[i]), time(data.start[i]), time(data.elapsed[i]), time(own[i]), statusText(data.status[i])]));
  return { controls, content: [spoken, timeline.surface.box, timeline.tip, timeline.legend,
    remark("Drag to zoom, double-click to see all, Ctrl and the wheel to zoom. Keys: arrows, + \u2212 0, n and p for the next command, Enter."),
    ...(data.critical ? [remark("The line above the lanes shows when the critical path was in a command that started no other; such commands have an outline where they are wide enough.")] : [])] };
} });
