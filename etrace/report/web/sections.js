// SPDX-License-Identifier: Apache-2.0
// The parts of the page that are lists: figures, failures, commands, modules, headers.
import { Table } from "./table.js";
import { el, number, size, statusText, time } from "./show.js";

export function section(id, title, controls, ...content) {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("div", { class: "head" }, el("h2", { id: `${id}-title` }, title), ...controls), ...content);
}

export function searchBox(label, onInput) {
  let waiting = 0;
  const box = el("input", { type: "search", "aria-label": label, placeholder: label, oninput: () => {
    clearTimeout(waiting); waiting = setTimeout(() => onInput(box.value), 120);
  } });
  return box;
}

export function choice(label, options, onChange) {
  const box = el("select", { onchange: () => onChange(box.value) }, ...options.map(([value, text]) => el("option", { value }, text)));
  return el("label", {}, `${label} `, box);
}

export function figures(d) {
  let failed = 0, cpu = 0;
  for (let i = 0; i < d.n; i++) { failed += d.status[i] > 0; cpu += d.cpu ? Math.max(0, d.cpu[i]) : 0; }
  const shown = [["elapsed", time(d.end)], ["commands", number(d.meta.n_programs)], ["with a status other than 0", number(failed)], ["files", number(d.filePath.length)]];
  if (d.cpu) shown.splice(1, 0, ["CPU time", time(cpu)]);
  const { critical } = d.meta, doubts = critical ? critical.doubts : [], most = doubts.length ? ", at most" : "";
  if (critical) shown.splice(1, 0, [`critical path${most}`, time(critical.ns)], [`perfect parallelism${most}`, `${Math.round(100 * critical.parallelism)} %`]);
  if (d.meta.is_processed) shown.push(["linked modules", number(d.meta.modules.length)], ["compilations", number(d.meta.n_compilations)]);
  return el("div", {}, el("ul", { class: "figures" }, ...shown.map(([name, value]) => el("li", {}, el("b", {}, value), el("span", {}, name)))),
    ...doubts.map(([ns, where]) => el("p", { class: "soft" }, `Of the critical path ${time(ns)} is ${where}.`)));
}

export function failureList(d, details) {
  return d.meta.failures.map(({ command, known, files, environment }) => {
    const chain = [], name = d.text(d.label[known]);
    for (let i = command; i >= 0; i = d.parent[i]) chain.unshift(i);
    const stage = command === known ? [] : [el("p", {}, `Its stage ${d.text(d.label[command])} ended with status ${statusText(d.status[command])}:`),
      el("pre", { class: "soft", tabindex: "0" }, d.commandLine(command))];
    return el("div", { class: "failure", role: "alert" },
      el("h3", {}, `${name} ended with status ${statusText(d.status[known])}`),
      el("pre", { tabindex: "0" }, d.commandLine(known)),
      el("p", {}, "in ", el("bdi", { class: "mono" }, d.text(d.cwd[known])), `, ${time(d.start[command] + d.elapsed[command])} after the build began`),
      ...stage,
      el("p", { class: "chain" }, "started by: ", ...chain.flatMap((i, k) => [k ? " \u203a " : "", details.link(i)])),
      el("h4", {}, `the last ${files.length} files that it opened`),
      el("pre", { tabindex: "0" }, files.map(f => `${d.relative(f.path)}  (${f.access})`).join("\n") || "none"),
      el("details", {}, el("summary", {}, `environment (${environment.length ? `${environment.length} variables` : "not traced: etrace run --env records it"})`), el("pre", { tabindex: "0" }, environment.join("\n"))));
  });
}

// the end of a path says more than its begin
const ending = (text, most = 20) => text.length > most ? `\u2026${text.slice(1 - most)}` : text;

export function commandTable(d, details) {
  const columns = [
    { name: "command", width: 230, value: i => d.text(d.label[i]), text: i => d.text(d.label[i]) },
    { name: "time", width: 90, number: true, value: i => d.elapsed[i], text: i => time(d.elapsed[i]) },
    ...(d.cpu ? [{ name: "CPU", width: 90, number: true, value: i => d.cpu[i], text: i => time(d.cpu[i]) }] : []),
    ...(d.memory ? [{ name: "memory", width: 90, number: true, value: i => d.memory[i], text: i => d.memory[i] < 0 ? "-" : size(d.memory[i]) }] : []),
    ...(d.slack ? [{ name: "slack", width: 90, number: true, value: i => d.critical[i] ? -1 : d.slack[i], text: i => d.critical[i] ? "critical" : time(d.slack[i]) }] : []),
    { name: "start", width: 90, number: true, value: i => d.start[i], text: i => time(d.start[i]) },
    { name: "status", width: 70, number: true, value: i => d.status[i], text: i => d.status[i] < 0 ? "-" : String(d.status[i]) },
    { name: "class", width: 90, value: i => d.class[i], text: i => d.meta.classes[d.class[i]] },
    ...(d.target ? [{ name: "target", width: 190, value: i => d.text(d.target[i]), text: i => ending(d.text(d.target[i])) }] : []),
    { name: "arguments", width: 560, grow: true, value: i => d.commandLine(i), text: i => d.commandLine(i).slice(0, 400) },
  ];
  const table = new Table("commands", d.n, columns, i => details.select(i));
  details.onChange(i => { table.chosen = i; table.draw(); });
  return table;
}

export function moduleTable(d, onOpen) {
  const all = d.meta.modules, sum = (m, at) => m.made_of.reduce((total, each) => total + each[at], 0);
  return new Table("linked modules", all.length, [
    { name: "module", width: 320, value: i => all[i].path, text: i => d.relative(all[i].path) },
    { name: "kind", width: 110, value: i => all[i].kind, text: i => all[i].kind },
    { name: "size", width: 90, number: true, value: i => all[i].bytes, text: i => all[i].bytes ? size(all[i].bytes) : "-" },
    { name: "files", width: 80, number: true, value: i => sum(all[i], 1), text: i => number(sum(all[i], 1)) },
    { name: "their size", width: 90, number: true, value: i => sum(all[i], 2), text: i => size(sum(all[i], 2)) },
    { name: "made of", width: 560, grow: true, value: i => sum(all[i], 1), text: i => all[i].made_of.map(([kind, n, bytes]) => `${kind}: ${number(n)} (${size(bytes)})`).join(", ") },
  ], i => all[i].file >= 0 && onOpen(all[i].file));
}

export function headerTable(d, onOpen) {
  const of = name => d.column(`header.${name}`), path = of("path"), file = of("file"), opens = of("opens"), readers = of("compilations"),
    bytes = of("bytes"), share = of("share"), ns = of("ns"), error = of("error");
  return new Table("headers", path.length, [
    { name: "header", width: 360, value: i => d.text(path[i]), text: i => d.relative(d.text(path[i])) },
    { name: "compilations", width: 115, number: true, value: i => readers[i], text: i => number(readers[i]) },
    { name: "times read", width: 100, number: true, value: i => opens[i], text: i => number(opens[i]) },
    { name: "bytes read", width: 100, number: true, value: i => bytes[i], text: i => size(bytes[i]) },
    { name: "of all", width: 80, number: true, value: i => share[i], text: i => `${(100 * share[i]).toFixed(1)} %` },
    { name: "estimated time", width: 210, number: true, grow: true, value: i => ns[i], text: i => error[i] < 0 ? "not known" : `${(ns[i] / 1e9).toFixed(3)} s \u00b1 ${(error[i] / 1e9).toFixed(3)} s` },
  ], i => file[i] >= 0 && onOpen(file[i]));
}
