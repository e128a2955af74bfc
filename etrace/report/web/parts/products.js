// SPDX-License-Identifier: Apache-2.0
// What the build made, and what headers cost it: tables of linked modules and of headers.
import { addPart, remark } from "../parts.js";
import { Table } from "../table.js";
import { number, size, time } from "../show.js";

// the size of n files; nGone of them were gone when the trace was parsed
export function sizeOf(n, bytes, nGone) {
  if (n && nGone === n) return size(-1);
  return nGone ? `${size(bytes)}, ${number(nGone)} not known` : size(bytes);
}

function moduleTable(d, onOpen) {
  const all = d.meta.modules, sum = (m, at) => m.made_of.reduce((total, each) => total + each[at], 0);
  return new Table("linked modules", all.length, [
    { name: "module", width: 320, value: i => all[i].path, text: i => d.relative(all[i].path) },
    { name: "kind", width: 110, value: i => all[i].kind, text: i => all[i].kind },
    { name: "size", width: 90, number: true, value: i => all[i].bytes, text: i => all[i].bytes < 0 ? "-" : size(all[i].bytes) },
    { name: "files", width: 80, number: true, value: i => sum(all[i], 1), text: i => number(sum(all[i], 1)) },
    { name: "their size", width: 90, number: true, value: i => sum(all[i], 2), text: i => sizeOf(sum(all[i], 1), sum(all[i], 2), sum(all[i], 3)) },
    { name: "made of", width: 560, grow: true, value: i => sum(all[i], 1), text: i => all[i].made_of.map(([kind, n, bytes, nGone]) => `${kind}: ${number(n)} (${sizeOf(n, bytes, nGone)})`).join(", ") },
  ], i => all[i].file >= 0 && onOpen(all[i].file));
}

// an error of 20 % and more is a range
export function estimate(ns, error) {
  if (error < 0 || ns + error <= 0) return "not known";
  if (error < .2 * ns) return `${time(ns)} \u00b1 ${time(error)}`;
  return ns > error ? `${time(ns - error)} to ${time(ns + error)}` : `at most ${time(ns + error)}`;
}

function headerTable(d, onOpen) {
  const of = name => d.column(`header.${name}`), path = of("path"), file = of("file"), opens = of("opens"), readers = of("compilations"),
    bytes = of("bytes"), share = of("share"), ns = of("ns"), error = of("error");
  return new Table("headers", path.length, [
    { name: "header", width: 360, value: i => d.text(path[i]), text: i => d.relative(d.text(path[i])) },
    { name: "compilations", width: 115, number: true, value: i => readers[i], text: i => number(readers[i]) },
    { name: "times read", width: 100, number: true, value: i => opens[i], text: i => number(opens[i]) },
    { name: "bytes read", width: 100, number: true, value: i => bytes[i], text: i => size(bytes[i]) },
    { name: "of all", width: 80, number: true, value: i => share[i], text: i => `${(100 * share[i]).toFixed(1)} %` },
    { name: "estimated time", width: 210, number: true, grow: true, value: i => ns[i], text: i => estimate(ns[i], error[i]) },
  ], i => file[i] >= 0 && onOpen(file[i]));
}

addPart({ id: "modules", title: "Linked modules", make: ({ data, openFile, handles }) => {
  if (!data.meta.modules.length) return null;
  const table = handles.tables.modules = moduleTable(data, openFile), all = data.meta.totals.linked_modules;
  if (all > table.n) table.counted(`the ${number(table.n)} largest of ${number(all)}`);
  return { controls: [table.count], content: [table.box] };
} });

addPart({ id: "headers", title: "Headers by cost", make: ({ data, openFile, handles }) => {
  if (!data.column("header.path")?.length) return null;
  const table = handles.tables.headers = headerTable(data, openFile);
  handles.estimate = estimate;
  return { controls: [table.count], content: [table.box,
    remark("Time is estimated from all compilations by least squares: time against bytes of sources and of headers. The error is one standard error; where it is 20 % or more, a range is shown. All headers share one rate, so the ranking is by bytes read.")] };
} });
