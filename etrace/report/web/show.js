// SPDX-License-Identifier: Apache-2.0
// Elements, figures and colours. Text enters the page as text nodes only.

export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function time(ns) {
  if (ns < 0) return "-";
  if (ns === 0) return "0";
  if (ns >= 60e9) return `${Math.floor(ns / 60e9)} min ${(ns % 60e9 / 1e9).toFixed(0)} s`;
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["\u00b5s", 1e3]]) if (ns >= size) return `${(ns / size).toPrecision(3)} ${unit}`;
  return `${ns} ns`;
}

export function size(bytes) {
  if (bytes < 0) return "size not known"; // the file was gone when the trace was parsed
  for (const [unit, step] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (bytes >= step) return `${(bytes / step).toFixed(1)} ${unit}`;
  return `${bytes} B`;
}

export const number = n => n.toLocaleString("en");
export const statusText = s => s === -2 ? "none: it executed another program" : s < 0 ? "not known" : s > 128 && s < 193 ? `${s} (signal ${s - 128})` : String(s);

// dark text is readable on all of them, in light and in dark pages
export const PALETTE = ["#8ecae6", "#ffb703", "#95d5b2", "#f4a6c1", "#cdb4f6", "#e9c46a", "#a8dadc", "#f3a683"];
export const OTHER = "#b8bec8", FAILED = "#ff6b5e", INK = "#16181c";
export const colourOf = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// values of commands -> colours: the eight that cost most have their own
export function legend(data, valueOf, nameOf) {
  const total = new Map();
  for (let i = 0; i < data.n; i++) {
    const value = valueOf(i);
    total.set(value, (total.get(value) ?? 0) + data.cost(i));
  }
  const best = [...total].sort((a, b) => b[1] - a[1]).slice(0, PALETTE.length).map(([value]) => value);
  const colours = new Map(best.map((value, i) => [value, PALETTE[i]]));
  const shown = best.map((value, i) => [nameOf(value), PALETTE[i]]), ofValue = value => colours.get(value) ?? OTHER;
  if (total.size > best.length) shown.push(["others", OTHER]);
  return { of: i => ofValue(valueOf(i)), ofValue, shown };
}

// a program has one colour on the whole page
export function programColours(data) { return data.programColours ??= legend(data, i => data.program[i], v => data.text(v)); }

// what a drawing shows, for those who cannot see it
export function spokenTable(caption, heads, rows) {
  const line = (tag, cells) => el("tr", {}, ...cells.map(text => el(tag, tag === "th" ? { scope: "col" } : {}, text)));
  return el("div", { class: "spoken" }, el("table", {}, el("caption", {}, caption), el("thead", {}, line("th", heads)), el("tbody", {}, ...rows.map(row => line("td", row)))));
}

export function swatch(colour) {
  const canvas = el("canvas", { width: 12, height: 12, "aria-hidden": "true" }), c = canvas.getContext("2d");
  c.fillStyle = colour; c.fillRect(0, 0, 12, 12);
  return canvas;
}

const SURFACES = new Set();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => SURFACES.forEach(each => each.ask()));
export function forgetSurfaces() { SURFACES.clear(); }

// a canvas at the resolution of the screen; `draw(c, width, height)` runs at most once a frame
export class Surface {
  constructor(label, draw) {
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": label });
    this.box = el("div", { class: "canvas" }, this.canvas);
    this.draw = draw; this.height = 100; this.isAsked = false;
    new ResizeObserver(() => this.ask()).observe(this.box);
    SURFACES.add(this);
  }
  get width() { return this.box.clientWidth || 800; }
  ask() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => { this.isAsked = false; this.paint(); });
  }
  paint() {
    const ratio = devicePixelRatio || 1, width = this.width;
    this.canvas.width = Math.round(width * ratio); this.canvas.height = Math.round(this.height * ratio);
    this.canvas.style.height = `${this.height}px`;
    const c = this.canvas.getContext("2d");
    c.scale(ratio, ratio); c.font = "12px system-ui, 'DejaVu Sans', sans-serif"; c.textBaseline = "middle";
    this.draw(c, width, this.height);
  }
  place(event) { const box = this.canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; }
}

// a text inside a bar, cut to its width
export function barText(c, text, x, y, width) {
  if (width < 24) return;
  const room = Math.floor((width - 6) / 6.4);
  c.fillText(text.length <= room ? text : text.slice(0, Math.max(1, room - 1)) + "\u2026", x + 3, y);
}
