// Adds buttons that sort, copy and download tables, and filters. The page is complete without this script.
"use strict";
const said = document.getElementById("said");
// Matches a text that a spreadsheet would compute (the rule of stages/report/tables.py). The text gets an apostrophe.
const computed = new RegExp({{ computed | tojson }});

function cells(row) {
  const texts = [...row.cells].map((cell) => cell.innerText.replace(/\s+/g, " ").trim());
  return texts.map((text) => (computed.test(text) ? `'${text}` : text));
}

function lines(table) {
  const head = cells(table.tHead.rows[0]);
  const body = [...table.tBodies].flatMap((part) => {
    let name = "";
    return [...part.rows].map((row) => {
      const own = cells(row);
      if (row.cells[0].classList.contains("name")) name = own[0];
      else own.unshift(name);
      return own;
    });
  });
  return [head, ...body];
}

function csv(table) {
  return lines(table).map((row) => row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(",")).join("\r\n") + "\r\n";
}

function value(text) {
  const number = text.replaceAll(",", "").replace("−", "-").match(/^[<\s]*(-?\d+(\.\d+)?)/);
  return number ? Number(number[1]) : text;
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
  return one.localeCompare(other);
}

// Labelled tables have one tbody for each row of the paper, so the lines of a row stay together.
function sort(table, column, header) {
  const labelled = table.classList.contains("labelled");
  const units = labelled ? [...table.tBodies] : [...table.tBodies[0].rows];
  const up = header.getAttribute("aria-sort") !== "ascending";
  const key = (unit) => {
    const row = labelled ? unit.rows[0] : unit;
    return row.cells[column] ? value(row.cells[column].innerText.trim()) : "";
  };
  const order = units.map((unit) => [key(unit), unit]).sort((a, b) => (up ? 1 : -1) * compare(a[0], b[0]));
  const parent = labelled ? table : table.tBodies[0];
  order.forEach(([, unit]) => parent.append(unit));
  table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  said.textContent = `Sorted by ${header.innerText}, ${up ? "ascending" : "descending"}`;
}

function button(text, label, act) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.setAttribute("aria-label", label);
  made.addEventListener("click", act);
  return made;
}

async function copy(table, title) {
  const text = lines(table).map((row) => row.join("\t")).join("\n");
  try {
    await navigator.clipboard.writeText(text);
    said.textContent = `Copied: ${title}`;
  } catch {
    const range = document.createRange();
    range.selectNode(table);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    said.textContent = "The table is selected. Copy the table with the keyboard.";
  }
}

function download(table, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv(table)], { type: "text/csv" }));
  link.download = `${name}.csv`;
  link.click();
  URL.revokeObjectURL(link.href);
  said.textContent = `Downloaded ${name}.csv`;
}

// Shows the entries of a ledger that contain all typed words and have every chosen verdict and source.
function filter(figure, search, menus, count) {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = menus.filter((menu) => menu.value).map((menu) => `${menu.name}=${menu.value}`);
  const entries = [...figure.querySelectorAll("[data-words]")];
  entries.forEach((entry) => {
    const own = entry.dataset.words.split("|");
    const text = entry.textContent.toLowerCase();
    entry.hidden = !(words.every((word) => text.includes(word)) && wanted.every((word) => own.includes(word)));
  });
  count.textContent = `${entries.filter((entry) => !entry.hidden).length} of ${entries.length}`;
}

function labelled(text, control) {
  const label = document.createElement("label");
  label.append(text, control);
  return label;
}

function addFilters(figure) {
  const choices = new Map();
  figure.querySelectorAll("[data-words]").forEach((entry) => entry.dataset.words.split("|").forEach((pair) => {
    const [name, value] = pair.split("=");
    if (!choices.has(name)) choices.set(name, new Set());
    if (value) choices.get(name).add(value);
  }));
  const bar = document.createElement("div");
  const search = document.createElement("input");
  const count = document.createElement("output");
  bar.className = "filters";
  search.type = "search";
  const menus = [...choices].map(([name, values]) => {
    const menu = document.createElement("select");
    menu.name = name;
    menu.append(new Option("all", ""), ...[...values].map((value) => new Option(value)));
    return menu;
  });
  const act = () => filter(figure, search, menus, count);
  [search, ...menus].forEach((control) => control.addEventListener("input", act));
  bar.append(labelled("Search", search), ...menus.map((menu) => labelled(menu.name, menu)));
  bar.append(button("Unfold all", "Unfold all entries", () => fold(figure, true)));
  bar.append(button("Fold all", "Fold all entries", () => fold(figure, false)), count);
  figure.querySelector(".heads").before(bar);
  act();
  // a link unfolds its entry; if the entry is filtered out, the filters are cleared
  const show = () => {
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const entry = place?.closest("[data-words]");
    if (!entry) return;
    if (entry.hidden) [search, ...menus].forEach((control) => (control.value = ""));
    act();
    entry.firstElementChild.open = true;
    entry.scrollIntoView();
  };
  addEventListener("hashchange", show);
  show();
  figure.addEventListener("click", (event) => {
    // the address of the page names the entry that was opened last
    const entry = event.target.closest("[data-words] summary")?.nextElementSibling;
    if (entry) history.replaceState(null, "", `#${entry.id}`);
  });
}

function fold(figure, open) {
  figure.querySelectorAll("[data-words] > details").forEach((entry) => (entry.open = open));
}

document.documentElement.style.setProperty("--banner", `${document.querySelector(".banner").offsetHeight}px`);

document.querySelectorAll("figure.ledger").forEach(addFilters);
// the words of a mark that has the focus
document.querySelectorAll(".picture .mark").forEach((mark) => {
  mark.addEventListener("focus", () => {
    document.getElementById("focused").textContent = mark.querySelector("title").textContent;
  });
});
document.querySelectorAll("figure.table").forEach((figure) => {
  const table = figure.querySelector("table");
  const title = document.getElementById(`${figure.id}-caption`).innerText;
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    if (header.classList.contains("source")) return;
    const made = document.createElement("button");
    made.type = "button";
    made.className = "sort";
    made.append(...header.childNodes);
    made.addEventListener("click", () => sort(table, column, header));
    header.append(made);
  });
  const tools = document.createElement("span");
  tools.className = "tools";
  tools.append(
    button("Copy", `Copy ${title}`, () => copy(table, title)),
    button("Download", `Download ${title} as CSV`, () => download(table, figure.id)),
  );
  figure.querySelector(".made").append(tools);
});
