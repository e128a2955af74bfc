// SPDX-License-Identifier: Apache-2.0
// The panel about one command: figures, its place in the tree, its files.
import { el, number, size, statusText, time } from "./show.js";

const MOST_FILES = 200;

let shown = null;
document.addEventListener("keydown", event => { if (event.key === "Escape" && shown?.chosen >= 0) shown.close(); });

export class Details {
  constructor(data, openFile) {
    Object.assign(this, { data, openFile, listeners: [], chosen: -1, before: null });
    this.box = el("aside", { id: "details", tabindex: "-1", "aria-label": "command", hidden: "" });
    shown = this;
  }
  onChange(listener) { this.listeners.push(listener); }
  close() { this.select(-1); this.before?.focus(); }
  select(command) {
    if (this.chosen < 0) this.before = document.activeElement;
    this.chosen = command;
    this.box.hidden = command < 0;
    if (command >= 0) this.box.replaceChildren(...this.content(command));
    for (const listener of this.listeners) listener(command);
  }
  link(command) {
    return el("button", { type: "button", onclick: () => this.select(command) }, this.data.text(this.data.label[command]));
  }
  content(i) {
    const d = this.data, facts = [["time", time(d.elapsed[i])], ["began at", time(d.start[i])], ["own time", time(d.ownTimes()[i])], ["status", statusText(d.status[i])], ["what for", d.text(d.role[i])],
      ["process", `${d.upid[i]}:${d.index[i]}`], ["directory", d.text(d.cwd[i])]];
    if (d.cpu) facts.splice(1, 0, ["CPU", time(d.cpu[i])]);
    if (d.memory && d.memory[i] >= 0) facts.push(["memory", size(d.memory[i])]);
    if (d.slack) facts.push(["slack", d.critical[i] ? "none: on the critical path" : time(d.slack[i])]);
    if (d.target) facts.push(["target", d.text(d.target[i])]);
    const up = [];
    for (let p = d.parent[i]; p >= 0; p = d.parent[p]) up.unshift(p);
    const below = [...d.children(i)];
    return [
      el("button", { type: "button", class: "close", "aria-label": "close", onclick: () => this.close() }, "\u00d7"),
      el("h2", {}, d.text(d.label[i])),
      el("dl", {}, ...facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
      el("pre", { class: "command-line", tabindex: "0" }, d.commandLine(i) || "(no program)"),
      ...this.list("started by", up, p => this.link(p)),
      ...this.list("started", below, p => this.link(p)),
      ...this.files("read", d.reads.of(i)), ...this.files("wrote", d.writes.of(i)),
    ];
  }
  list(title, items, make) {
    if (!items.length) return [];
    const shown = items.slice(0, MOST_FILES).map(item => el("li", {}, make(item)));
    if (items.length > MOST_FILES) shown.push(el("li", { class: "soft" }, `and ${number(items.length - MOST_FILES)} more`));
    return [el("h3", {}, `${title} (${number(items.length)})`), el("ul", { class: "links" }, ...shown)];
  }
  files(title, files) {
    const d = this.data;
    return this.list(title, files, file => el("button", { type: "button", onclick: () => this.openFile(file) }, `${d.pathOf(file)} (${size(d.fileSize[file])})`));
  }
}
