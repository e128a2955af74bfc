// SPDX-License-Identifier: Apache-2.0
// A table that holds 10^5 rows: only the rows in view are elements. Sorts by its heads; arrows move, Enter opens.
import { el, number } from "./show.js";

const ROW = 24, HEADS = 30;

export class Table {
  // columns: {name, width, number, value(row) to sort by, text(row), grow}
  constructor(label, n, columns, onOpen) {
    Object.assign(this, { n, columns, onOpen, chosen: -1, sorted: null, isDown: true, keep: null });
    this.order = Uint32Array.from({ length: n }, (_, i) => i);
    this.body = el("div", { class: "body", role: "rowgroup" });
    this.heads = el("div", { class: "row heads", role: "row" }, ...columns.map((c, i) => this.head(c, i)));
    this.rows = el("div", { class: "rows" }, this.heads, this.body);
    this.box = el("div", { class: "table", role: "grid", tabindex: "0", "aria-label": label, "aria-rowcount": n + 1,
      onscroll: () => this.draw(), onkeydown: event => this.key(event) }, this.rows);
    this.count = el("span", { class: "soft", "aria-live": "polite" });
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.arrange();
  }
  size(cell, c) { cell.style.width = `${c.width}px`; return cell; }
  head(c, i) {
    const button = el("button", { type: "button", onclick: () => this.sortBy(i) }, c.name);
    return this.size(el("div", { class: `cell${c.number ? " number" : ""}${c.grow ? " grow" : ""}`, role: "columnheader", "aria-sort": "none" }, button), c);
  }
  sortBy(i) {
    this.isDown = this.sorted === i ? !this.isDown : Boolean(this.columns[i].number);
    this.sorted = i;
    [...this.heads.children].forEach((head, at) => {
      head.setAttribute("aria-sort", at !== i ? "none" : this.isDown ? "descending" : "ascending");
      head.firstChild.textContent = this.columns[at].name + (at !== i ? "" : this.isDown ? " \u2193" : " \u2191");
    });
    this.arrange();
  }
  counted(text) { this.all = text; this.arrange(); } // what stands for the number of all rows
  filter(keep) { this.keep = keep; this.arrange(); }
  arrange() {
    let rows = Array.from({ length: this.n }, (_, i) => i);
    if (this.keep) rows = rows.filter(i => this.keep[i]);
    if (this.sorted !== null) {
      const keys = new Array(this.n), { value } = this.columns[this.sorted], sign = this.isDown ? -1 : 1;
      for (const i of rows) keys[i] = value(i);
      rows.sort((a, b) => sign * (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0) || a - b);
    }
    this.order = rows;
    this.body.style.height = `${rows.length * ROW}px`;
    this.count.textContent = rows.length === this.n ? this.all ?? number(this.n) : `${number(rows.length)} of ${number(this.n)}`;
    this.box.scrollTop = 0;
    this.draw();
  }
  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 4);
    const last = Math.min(this.order.length, first + Math.ceil((this.box.clientHeight || 400) / ROW) + 8);
    this.body.replaceChildren(...Array.from({ length: Math.max(0, last - first) }, (_, i) => this.line(first + i)));
  }
  line(at) {
    const row = this.order[at];
    const made = el("div", { class: row === this.chosen ? "row chosen" : "row", role: "row", "aria-rowindex": at + 2, onclick: () => this.open(at) },
      ...this.columns.map(c => this.size(el("div", { class: `cell${c.number ? " number" : ""}${c.grow ? " grow" : ""}`, role: "gridcell" }, c.text(row)), c)));
    made.style.top = `${at * ROW}px`;
    return made;
  }
  open(at) { this.chosen = this.order[at]; this.draw(); this.onOpen?.(this.chosen); }
  key(event) {
    const at = this.order.indexOf(this.chosen), page = Math.floor(this.box.clientHeight / ROW) - 2;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page }[event.key];
    if (event.key === "Enter" && event.target === this.box && at >= 0) this.onOpen?.(this.chosen);
    if (!step || !this.order.length) return;
    event.preventDefault();
    const to = Math.min(this.order.length - 1, Math.max(0, at + step));
    this.chosen = this.order[to];
    const top = to * ROW, room = this.box.clientHeight - HEADS - ROW;
    this.box.scrollTop = Math.min(top, Math.max(this.box.scrollTop, top - room));
    this.draw();
  }
}
