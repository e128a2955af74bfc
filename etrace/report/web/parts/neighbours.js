// SPDX-License-Identifier: Apache-2.0
// A file, who wrote it of what, and who reads it for what: columns of files and commands, joined by lines.
// Files of one directory and commands of one program are one node when a column has many; a click opens it.
import { addPart, choice, remark, searchBox } from "../parts.js";
import { el, number, size } from "../show.js";

const MOST_NODES = 2000, MOST_IN_COLUMN = 24;

// columns by distance: even ones hold files, odd ones commands; negative ones come before the file
export function neighbourhood(data, file, steps) {
  const n = data.filePath.length, columns = new Map([[0, [file]]]), edges = [];
  const seenFiles = new Set([file]), seenCommands = new Set();
  let room = MOST_NODES - 1, isCut = false;
  const take = (found, seen, list) => {
    for (const each of found) {
      if (seen.has(each)) continue;
      if (room <= 0) { isCut = true; return; }
      seen.add(each); list.push(each); room--;
    }
  };
  for (const sign of [-1, 1]) {
    const [toCommand, toFile] = sign < 0 ? [data.writes, data.reads] : [data.reads, data.writes];
    for (let step = 0, files = [file]; step < steps; step++) {
      const commands = [], next = [];
      for (const f of files) take(toCommand.commands(f, n), seenCommands, commands);
      for (const c of commands) take(toFile.of(c), seenFiles, next);
      columns.set(sign * (2 * step + 1), commands); columns.set(sign * (2 * step + 2), next);
      files = next;
    }
  }
  const place = { f: new Map(), c: new Map() };
  for (const [at, own] of columns) for (const each of own) place[at % 2 ? "c" : "f"].set(each, at);
  for (const [c, at] of place.c) {
    for (const [list, side] of [[data.reads.of(c), -1], [data.writes.of(c), 1]])
      for (const f of list) if (place.f.get(f) === at + side) edges.push(side < 0 ? [`f${f}`, `c${c}`] : [`c${c}`, `f${f}`]);
  }
  return { columns, edges, isCut, n: MOST_NODES - room };
}

const directory = path => path.includes("/") ? path.slice(0, path.lastIndexOf("/")) || "/" : ".";

export class Neighbours {
  constructor(data, details) {
    Object.assign(this, { data, details, file: -1, steps: 1, opened: new Set() });
    this.columns = el("div", { class: "columns", hidden: "", tabindex: "0", role: "group", "aria-label": "neighbourhood" });
    this.remark = el("p", { class: "remark", "aria-live": "polite" }, "Choose a file: type a part of its path.");
    this.box = el("div", {}, this.remark, this.columns);
    new ResizeObserver(() => this.drawLines()).observe(this.columns);
  }
  find(word, most = 200) {
    const d = this.data, low = word.toLowerCase(), found = [];
    for (let f = 0; f < d.filePath.length && found.length < most; f++) if (d.pathOf(f).toLowerCase().includes(low)) found.push(f);
    return found;
  }
  show(file) { this.file = file; this.opened.clear(); this.draw(); }
  draw() {
    const d = this.data;
    if (this.file < 0) return;
    this.found = neighbourhood(d, this.file, this.steps);
    this.nodeOf = new Map();
    const order = [...this.found.columns.keys()].sort((a, b) => a - b).filter(at => at === 0 || this.found.columns.get(at).length);
    this.columns.replaceChildren(...order.map(at => this.column(at, this.found.columns.get(at))));
    this.columns.hidden = false;
    const cut = this.found.isCut ? `; only the nearest ${number(MOST_NODES)} are shown` : "";
    this.remark.textContent = `${d.pathOf(this.file)}: ${size(d.fileSize[this.file])}, ${d.meta.file_kinds[d.fileKind[this.file]]}; ${number(this.found.n)} files and commands${cut}. cas deps and cas rdeps also respect the order of time.`;
    this.drawLines();
    this.columns.querySelector(".centre")?.scrollIntoView({ block: "nearest", inline: "center" });
  }
  column(at, items) {
    const title = at === 0 ? "file" : at % 2 ? (at < 0 ? "made by" : "read by") : at < 0 ? "of" : "to make";
    const groups = new Map(), isGrouped = items.length > MOST_IN_COLUMN;
    for (const item of items) {
      const name = this.groupOf(at, item), key = `${at} ${name}`;
      const id = isGrouped && !this.opened.has(key) ? key : `${key} ${item}`;
      if (!groups.has(id)) groups.set(id, { name, key, items: [] });
      groups.get(id).items.push(item);
    }
    return el("div", { class: "column" }, el("h3", {}, `${title} (${number(items.length)})`), ...[...groups.values()].map(g => this.node(at, g)));
  }
  groupOf(at, item) { return at % 2 ? this.data.text(this.data.program[item]) : directory(this.data.pathOf(item)); }
  node(at, { name, key, items }) {
    const isCommand = at % 2 !== 0, isGroup = items.length > 1;
    const text = isGroup ? `${name}: ${number(items.length)}` : isCommand ? this.data.text(this.data.label[items[0]]) : this.data.pathOf(items[0]);
    const press = isGroup ? () => { this.opened.add(key); this.draw(); } : isCommand ? () => this.details.select(items[0]) : () => this.show(items[0]);
    const made = el("button", { type: "button", title: text, class: `node${isCommand ? " command" : ""}${isGroup ? " group" : ""}${at === 0 ? " centre" : ""}`, onclick: press }, isGroup || isCommand ? text : text.slice(text.lastIndexOf("/") + 1) || text);
    if (isGroup) made.setAttribute("aria-expanded", "false");
    for (const item of items) this.nodeOf.set(`${isCommand ? "c" : "f"}${item}`, made);
    return made;
  }
  drawLines() {
    if (!this.found || this.columns.hidden) return;
    this.columns.querySelector("svg")?.remove();
    const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg"), box = this.columns.getBoundingClientRect();
    const drawn = new Map(), place = new Map();
    const at = node => {
      if (!place.has(node)) {
        const r = node.getBoundingClientRect();
        place.set(node, { left: r.left - box.left + this.columns.scrollLeft, right: r.right - box.left + this.columns.scrollLeft, y: r.top + r.height / 2 - box.top + this.columns.scrollTop });
      }
      return place.get(node);
    };
    this.numbers ??= new WeakMap(); let last = 0;
    const id = node => { if (!this.numbers.has(node)) this.numbers.set(node, ++last); return this.numbers.get(node); };
    for (const [from, to] of this.found.edges) {
      const a = this.nodeOf.get(from), b = this.nodeOf.get(to);
      if (a && b) drawn.set(a.outerHTML === b.outerHTML ? Symbol() : `${id(a)} ${id(b)}`, [a, b]);
    }
    let whole = "";
    for (const [a, b] of drawn.values()) {
      const p = at(a), q = at(b), bend = (q.left - p.right) / 2;
      whole += `M${p.right} ${p.y}C${p.right + bend} ${p.y} ${q.left - bend} ${q.y} ${q.left} ${q.y}`;
    }
    const path = document.createElementNS(space, "path");
    path.setAttribute("d", whole);
    svg.setAttribute("aria-hidden", "true");
    svg.setAttribute("width", this.columns.scrollWidth); svg.setAttribute("height", this.columns.scrollHeight);
    svg.append(path); this.columns.prepend(svg);
  }
}

addPart({ id: "neighbours", title: "A file and what surrounds it", make: ({ data, details, handles }) => {
  const neighbours = handles.neighbours = new Neighbours(data, details), list = el("ul", { class: "links", "aria-label": "files found" });
  const search = searchBox("part of a path", word => {
    const found = word ? neighbours.find(word, 12) : [];
    list.replaceChildren(...found.map(f => el("li", {}, el("button", { type: "button", onclick: () => { list.replaceChildren(); neighbours.show(f); } }, data.pathOf(f)))));
  });
  const first = data.meta.modules.find(module => module.file >= 0), box = el("div", {}, list, neighbours.box);
  if (first) new IntersectionObserver((seen, observer) => {
    if (!seen.some(entry => entry.isIntersecting)) return;
    observer.disconnect();
    if (neighbours.file < 0) neighbours.show(first.file);
  }).observe(box);
  const kept = remark(`${number(data.filePath.length)} of the ${number(data.meta.totals.files)} files are here: tools, directories and devices are left out.`);
  return { controls: [search, choice("steps", [["1", "1"], ["2", "2"], ["3", "3"]], n => { neighbours.steps = Number(n); neighbours.draw(); })], content: [box, kept] };
} });
