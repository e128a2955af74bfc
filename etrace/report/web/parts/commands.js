// SPDX-License-Identifier: Apache-2.0
// All commands as a table.
import { addPart, remark, searchBox } from "../parts.js";
import { Table } from "../table.js";
import { number, size, time } from "../show.js";

// the end of a path says more than its begin
const ending = (text, most = 20) => text.length > most ? `\u2026${text.slice(1 - most)}` : text;

function commandTable(d, details) {
  const own = d.ownTimes(), columns = [
    { name: "command", width: 210, value: i => d.text(d.label[i]), text: i => d.text(d.label[i]) },
    { name: "time", width: 90, number: true, value: i => d.elapsed[i], text: i => time(d.elapsed[i]) },
    { name: "own time", width: 95, number: true, value: i => own[i], text: i => time(own[i]) },
    ...(d.cpu ? [{ name: "CPU", width: 90, number: true, value: i => d.cpu[i], text: i => time(d.cpu[i]) }] : []),
    ...(d.memory ? [{ name: "memory", width: 90, number: true, value: i => d.memory[i], text: i => d.memory[i] < 0 ? "-" : size(d.memory[i]) }] : []),
    ...(d.slack ? [{ name: "slack", width: 90, number: true, value: i => d.critical[i] ? -1 : d.slack[i], text: i => d.critical[i] ? "critical" : time(d.slack[i]) }] : []),
    { name: "start", width: 90, number: true, value: i => d.start[i], text: i => time(d.start[i]) },
    { name: "status", width: 70, number: true, value: i => d.status[i], text: i => d.status[i] < 0 ? "-" : String(d.status[i]) },
    { name: "what for", width: 210, value: i => d.text(d.role[i]), text: i => d.text(d.role[i]) },
    ...(d.target ? [{ name: "target", width: 190, value: i => d.text(d.target[i]), text: i => ending(d.text(d.target[i])) }] : []),
    { name: "arguments", width: 560, grow: true, value: i => d.commandLine(i), text: i => d.commandLine(i).slice(0, 400) },
  ];
  const table = new Table("commands", d.n, columns, i => details.select(i));
  table.sortBy(columns.findIndex(c => c.name === (d.cpu ? "CPU" : "own time"))); // what costs most comes first
  details.onChange(i => { table.chosen = i; table.draw(); });
  return table;
}

addPart({ id: "commands", title: "Commands", make: ({ data, details, handles }) => {
  const table = handles.tables.commands = commandTable(data, details), { commands } = data.meta.totals;
  table.counted(`${number(commands)} commands, ${number(data.n - commands)} processes that ran no program`);
  return { controls: [table.count, searchBox("filter commands", word => table.filter(data.commandsMatching(word)))], content: [table.box, remark("Own time is the time of a command while none of those that it started ran. Slack is how much later it could have ended without delaying the build.")] };
} });
