// SPDX-License-Identifier: Apache-2.0
// Why the build failed.
import { addPart } from "../parts.js";
import { el, statusText, time } from "../show.js";

function failureList(d, details) {
  return d.meta.failures.map(({ command, known, ended, output, files, environment }) => {
    const chain = [], name = d.text(d.label[known]);
    for (let i = command; i >= 0; i = d.parent[i]) chain.unshift(i);
    const stage = command === known ? [] : [el("p", {}, `Its stage ${d.text(d.label[command])} ended with ${ended}:`),
      el("pre", { class: "soft", tabindex: "0" }, d.commandLine(command))];
    return el("div", { class: "failure", role: "alert" },
      el("h3", {}, `${name} ended with status ${statusText(d.status[known])}`),
      el("pre", { tabindex: "0" }, d.commandLine(known)),
      el("p", {}, "in ", el("bdi", { class: "mono" }, d.text(d.cwd[known])), `, ${time(d.start[command] + d.elapsed[command])} after the build began`),
      ...stage,
      ...(output.length ? [el("h4", {}, "its last output"), el("pre", { class: "output", tabindex: "0" }, output.join("\n"))] : []),
      el("p", { class: "chain" }, "started by: ", ...chain.flatMap((i, k) => [k ? " \u203a " : "", details.link(i)])),
      el("h4", {}, `the last ${files.length} files that it opened`),
      el("pre", { tabindex: "0" }, files.map(f => `${d.relative(f.path)}  (${f.access})`).join("\n") || "none"),
      el("details", {}, el("summary", {}, `environment (${environment.length ? `${environment.length} variables` : "not traced: etrace run --env records it"})`), el("pre", { tabindex: "0" }, environment.join("\n"))));
  });
}

function interruption(d) {
  return d.meta.interrupted ? [el("p", { role: "alert" }, `The build was interrupted by ${d.meta.interrupted}.`)] : [];
}

addPart({ id: "failures", title: "Why the build failed",
  make: ({ data, details }) => data.meta.failures.length || data.meta.interrupted
    ? { content: [...interruption(data), ...failureList(data, details)] } : null });
