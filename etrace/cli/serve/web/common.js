// SPDX-License-Identifier: Apache-2.0
// What the pages of the server share. All text of a build goes into a page by textContent: it is a
// stranger's.

const LONG = 60;

export const at = (id) => document.getElementById(id);

export const element = (name, text = "", more = {}) => {
  const made = Object.assign(document.createElement(name), more);
  made.textContent = text;
  return made;
};

// The address that `etrace serve` printed ends by the token; it stays in this tab alone.
const token = () => {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem("token") ?? "";
};

export const getJson = async (address, signal) => {
  const headers = { Authorization: `Bearer ${token()}` };
  const response = await fetch(address, { signal, headers });
  const value = await response.json();
  if (!response.ok) throw new Error([value.error, value.hint].filter(Boolean).join(". "));
  return value;
};

export const fill = (select, names) =>
  select.replaceChildren(...names.map((name) => element("option", name, { value: name })));

const text = (value) => {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join(" ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};

const cell = (value, act) => {
  const made = element("td", "", { className: value.length > LONG ? "long" : "" });
  made.append(act ? element("button", value, { type: "button", onclick: act }) : value);
  return made;
};

// `links` has what a click on a value of a column does: (value, record).
export const table = (entries, links = {}) => {
  const records = entries.map((each) => (typeof each === "object" && each ? each : { entry: each }));
  const keys = [...new Set(records.flatMap(Object.keys))];
  const made = element("table");
  const head = made.createTHead().insertRow();
  head.append(...keys.map((key) => element("th", key, { scope: "col" })));
  const body = made.createTBody();
  for (const record of records) {
    const cells = keys.map((key) => {
      const act = links[key] && (() => links[key](record[key], record));
      return cell(text(record[key]), act);
    });
    body.insertRow().append(...cells);
  }
  return made;
};

// Starts a page; what went wrong is its state.
export const begin = (start) =>
  start().catch((error) => {
    at("state").className = "wrong";
    at("state").textContent = error.message;
  });
