// SPDX-License-Identifier: Apache-2.0
// A form for every query of openapi.json, and a table of its answer. All text of a build goes into
// the page by textContent: it is a stranger's.

import { at, begin, element, fill, getJson, table } from "./common.js";

const PREFIX = "/api/v1/databases/{database}/";
const REPORT = `${PREFIX}report`;
const OFTEN = ["path", "binary", "pid", "filter", "command-filter"];
const PAGE = "page";
const ROWS = 200;

let queries = {};
let asking = null;
let page = 0;

// ---- the form

const field = (parameter) => {
  const { name, schema, description } = parameter;
  const label = element("label");
  const kind = schema.items?.type ?? schema.type;
  if (kind === "boolean") {
    label.className = "flag";
    label.append(element("input", "", { type: "checkbox", name }), name);
  } else if (schema.enum) {
    const select = element("select", "", { name });
    fill(select, ["", ...schema.enum]);
    label.append(name, select);
  } else {
    const type = kind === "integer" ? "number" : "text";
    label.append(name, element("input", "", { type, name, min: 0 }));
  }
  label.append(element("small", description));
  return label;
};

const rank = (parameter) => {
  const found = OFTEN.indexOf(parameter.name);
  return found < 0 ? OFTEN.length : found;
};

const showForm = () => {
  const query = queries[at("query").value];
  at("summary").textContent = query.summary;
  const shown = query.parameters.filter((each) => each.in === "query" && each.name !== PAGE);
  shown.sort((a, b) => rank(a) - rank(b));
  const isOften = (each) => rank(each) < OFTEN.length;
  at("often").replaceChildren(...shown.filter(isOften).map(field));
  at("seldom").replaceChildren(...shown.filter((each) => !isOften(each)).map(field));
  at("answer").replaceChildren();
  at("state").textContent = "";
  pages(0, 0);
};

const chosen = () => {
  const values = new URLSearchParams();
  for (const input of at("parameters").querySelectorAll("input, select")) {
    if (input.type === "checkbox") {
      if (input.checked) values.append(input.name, "true");
    } else if (input.value !== "") {
      values.append(input.name, input.value);
    }
  }
  if (!values.has("entries-per-page")) values.set("entries-per-page", ROWS);
  values.set(PAGE, page);
  return values;
};

// ---- the answer

const pages = (now, last) => {
  page = now;
  at("back").disabled = now <= 0;
  at("next").disabled = now >= last;
};

const show = (value) => {
  const isPage = Array.isArray(value.entries) && "page_max" in value;
  at("answer").replaceChildren(table(isPage ? value.entries : [value]));
  at("state").textContent = isPage
    ? `${value.count} entries, page ${value.page + 1} of ${value.page_max + 1}`
    : "";
  pages(isPage ? value.page : 0, isPage ? value.page_max : 0);
};

const ask = async () => {
  asking?.abort();
  const control = new AbortController();
  asking = control;
  const name = encodeURIComponent(at("database").value);
  const address = `/api/v1/databases/${name}/${at("query").value}?${chosen()}`;
  at("address").textContent = address;
  at("stop").disabled = false;
  at("state").className = "";
  at("state").textContent = "asking ...";
  try {
    show(await getJson(address, control.signal));
  } catch (error) {
    if (asking !== control) return;
    at("state").className = "wrong";
    at("state").textContent = control.signal.aborted ? "stopped" : error.message;
    at("answer").replaceChildren();
  } finally {
    if (asking === control) at("stop").disabled = true;
  }
};

const turn = (by) => {
  page += by;
  ask();
};

const showReport = () => {
  at("report").href = `report?build=${encodeURIComponent(at("database").value)}`;
};

const start = async () => {
  const description = await getJson("/openapi.json");
  const { databases } = await getJson("/api/v1/databases");
  for (const [path, { get }] of Object.entries(description.paths)) {
    if (path.startsWith(PREFIX) && path !== REPORT) queries[path.slice(PREFIX.length)] = get;
  }
  fill(at("database"), databases.map((each) => each.name));
  fill(at("query"), Object.keys(queries));
  at("query").value = "commands";
  at("query").addEventListener("change", showForm);
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    page = 0;
    ask();
  });
  at("stop").addEventListener("click", () => asking?.abort());
  at("back").addEventListener("click", () => turn(-1));
  at("next").addEventListener("click", () => turn(1));
  at("database").addEventListener("change", showReport);
  showReport();
  showForm();
  ask();
};

begin(start);
