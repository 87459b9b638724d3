// One window of the sandbox: sends what the person does, shows what the server says. All markup comes from the server.

const page = document.body.dataset;
const byId = (id) => document.getElementById(id);
const opened = new Set(); // ids of long texts that the person unfolded

async function send(path, body) {
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ as: page.as, ...body }),
    });
    if (!response.ok) return await response.text();
    return (await response.json()).trouble;
  } catch {
    return "The sandbox does not answer. Is it still running?";
  }
}

// --- what the server changes -----------------------------------------------------------------------------------------

const parse = (html) => {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  return holder.content;
};
const same = (one, other) => one && other && one.id === other.id && one.dataset.rev === other.dataset.rev;

function apply({ target, html, where }) {
  const element = byId(target);
  if (!element) return;
  const focused = document.activeElement?.id;
  if (target === "modal") return showModal(element, parse(html));
  const list = element.closest(".log, .screen");
  const atEnd = list && list.scrollHeight - list.scrollTop - list.clientHeight < 80;
  const fresh = parse(html);
  if (where === "remove") element.remove();
  else if (where === "append") element.append(fresh);
  else if (where === "all") reconcile(element, fresh);
  else if (where === "replace") element.replaceWith(fresh);
  else if (!same(element.firstElementChild, fresh.firstElementChild)) element.replaceChildren(fresh);
  if (focused && document.activeElement?.id !== focused) byId(focused)?.focus({ preventScroll: true });
  unfold();
  if (atEnd) list.scrollTop = list.scrollHeight;
  if (target === "sidebar") countUnread();
  if (target === "log" && where === "append") markRead();
}

// Keeps the children that did not change, so that nothing flickers and a screen reader hears only what is new.
function reconcile(list, fresh) {
  const before = new Map([...list.children].map((child) => [child.id, child]));
  const after = [...fresh.children].map((child) => (same(before.get(child.id), child) ? before.get(child.id) : child));
  const wanted = new Set(after);
  for (const child of [...list.children]) if (!wanted.has(child)) child.remove();
  after.forEach((child, index) => {
    if (list.children[index] !== child) list.insertBefore(child, list.children[index] ?? null);
  });
}

function listen() {
  const query = new URLSearchParams({ as: page.as, channel: page.channel, since: page.since });
  if (page.thread) query.set("thread", page.thread);
  const source = new EventSource(`/events?${query}`);
  source.addEventListener("put", (event) => apply(JSON.parse(event.data)));
  source.addEventListener("open", () => toast(""));
  source.addEventListener("error", () => toast("Connection to the sandbox lost. Trying again…"));
}

function toast(sentence) {
  const place = byId("toasts");
  place.textContent = sentence;
  place.hidden = !sentence;
}

function countUnread() {
  const unread = [...document.querySelectorAll("#sidebar .count")].reduce((sum, one) => sum + parseInt(one.textContent), 0);
  document.title = (unread ? `(${unread}) ` : "") + document.title.replace(/^\(\d+\) /, "");
}

// --- buttons, menus and fields ---------------------------------------------------------------------------------------

function entries(container) {
  const fields = new Map();
  for (const control of container.querySelectorAll("[name][data-control]")) {
    const { name, type, value, checked } = control;
    if (type === "checkbox") fields.set(name, [...(fields.get(name) ?? []), ...(checked ? [value] : [])]);
    else if (type === "radio") fields.set(name, checked ? value : (fields.get(name) ?? null));
    else fields.set(name, value || null);
  }
  return fields;
}

async function press(control, name, value) {
  const container = control.closest("[data-ts], [data-view]");
  if (!container || control.classList.contains("busy")) return;
  if (!(await confirmed(control))) return;
  busy(control, true);
  container.querySelector(".trouble")?.remove();
  const { view, channel, ts } = container.dataset;
  const fields = [...entries(container)];
  const trouble = await send("/do/click", { name, value, fields, ...(view ? { view } : { channel, ts }) });
  busy(control, false);
  if (trouble) tell(byId(container.id) ?? container, trouble);
}

function tell(container, sentence) {
  if (container.querySelector(".trouble")) return;
  const note = document.createElement("p");
  note.className = "trouble";
  note.setAttribute("role", "alert");
  note.textContent = `⚠️ ${sentence}`;
  (container.querySelector(".body, .modal-body, .blocks") ?? container).append(note);
}

function busy(control, on) {
  control.classList.toggle("busy", on);
  if (on) control.setAttribute("aria-busy", "true");
  else control.removeAttribute("aria-busy");
}

// Asks "are you sure" where the app wants it asked.
function confirmed(control) {
  const question = control.closest(".control")?.querySelector("template.confirm");
  if (!question) return Promise.resolve(true);
  const dialog = document.createElement("dialog");
  dialog.className = "asks";
  dialog.append(question.content.cloneNode(true));
  dialog.setAttribute("aria-label", dialog.querySelector("h2").textContent);
  document.body.append(dialog);
  dialog.addEventListener("click", (event) => {
    const answer = event.target.closest("button")?.value;
    if (answer) dialog.close(answer);
  });
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "confirm");
    });
  });
}

function chosenValue(control) {
  const container = control.closest("[data-ts], [data-view]");
  return entries(container).get(control.name);
}

document.addEventListener("click", (event) => {
  const target = event.target;
  const control = target.closest("[data-control=button], [data-control=overflow]");
  if (control) {
    control.closest("details.overflow")?.removeAttribute("open");
    press(control, control.dataset.name, control.dataset.control === "overflow" ? control.value : null);
  }
  const more = target.closest(".more");
  if (more) toggleFold(more);
  if (target.closest("[data-join]")) {
    send("/do/join", { channel: page.channel }).then((trouble) => (trouble ? toast(trouble) : location.reload()));
  }
  const lab = target.closest("[data-lab]");
  if (lab) send(`/do/lab/${lab.dataset.lab}`, {}).then(toast);
  const fault = target.closest("[data-fault]");
  if (fault) send("/do/lab/fault", { name: fault.dataset.fault }).then(toast);
  for (const menu of document.querySelectorAll("details[open]:is(.overflow, .multi, .switcher)")) {
    if (!menu.contains(target)) menu.open = false;
  }
});

document.addEventListener("change", (event) => {
  const control = event.target.closest("[name][data-control]");
  // A field of an input block is sent with its form, not by itself.
  if (control && !control.closest(".field")) press(control, control.name, chosenValue(control));
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details[open]:is(.overflow, .multi, .switcher)");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
  document.body.classList.remove("menu-open");
});

function toggleFold(more, open = more.getAttribute("aria-expanded") !== "true") {
  const part = more.getAttribute("aria-controls");
  byId(part).classList.toggle("open", open);
  more.setAttribute("aria-expanded", String(open));
  more.textContent = open ? "See less" : "See more";
  if (open) opened.add(part);
  else opened.delete(part);
}

function unfold() {
  for (const more of document.querySelectorAll(".more[aria-expanded=false]")) {
    if (opened.has(more.getAttribute("aria-controls"))) toggleFold(more, true);
  }
}

// --- the modal -------------------------------------------------------------------------------------------------------

let returnTo = "";

function showModal(dialog, fresh) {
  const before = dialog.firstElementChild;
  const after = fresh.firstElementChild;
  if (same(before, after) && dialog.open) return;
  const typed = before && after && before.dataset.view === after.dataset.view ? dirty(before) : new Map();
  const failed = after?.querySelector("[aria-invalid]");
  dialog.replaceChildren(fresh);
  if (!after) return closeModal(dialog);
  if (!failed) refill(dialog, typed);
  for (const field of dialog.querySelectorAll("[maxlength]")) countLetters(field);
  if (!dialog.open) {
    returnTo = document.activeElement?.id ?? "";
    dialog.showModal();
  }
  (failed ?? dialog.querySelector("[data-focus]") ?? dialog.querySelector(".field :is(input, textarea, select)"))?.focus();
}

function closeModal(dialog) {
  if (dialog.open) dialog.close();
  byId(returnTo)?.focus({ preventScroll: true });
}

// What the person typed and the server does not know yet survives an update of the same form.
const dirty = (form) =>
  new Map(
    [...form.querySelectorAll("input, textarea")]
      .filter((field) => field.value !== field.defaultValue && !["checkbox", "radio"].includes(field.type))
      .map((field) => [field.name, field.value]),
  );

function refill(dialog, typed) {
  for (const field of dialog.querySelectorAll("input, textarea")) {
    if (typed.has(field.name)) field.value = typed.get(field.name);
  }
}

function countLetters(field) {
  const limit = field.maxLength;
  const counter = document.createElement("small");
  counter.className = "counter";
  const count = () => {
    counter.textContent = `${field.value.length} / ${limit}`;
    counter.classList.toggle("full", field.value.length >= limit * 0.9);
  };
  field.addEventListener("input", count);
  count();
  field.after(counter);
}

const modal = byId("modal");

async function submitModal() {
  const form = modal.querySelector("form");
  const button = form?.querySelector("[type=submit]");
  if (!button || button.classList.contains("busy")) return;
  busy(button, true);
  const trouble = await send("/do/submit", { view: form.dataset.view, fields: [...entries(form)] });
  busy(button, false);
  if (trouble && modal.contains(form)) tell(form, trouble);
}

async function leaveModal() {
  const view = modal.querySelector("form")?.dataset.view;
  const trouble = view && (await send("/do/close", { view }));
  if (trouble) closeModal(modal);
}

modal.addEventListener("submit", (event) => {
  event.preventDefault();
  submitModal();
});
modal.addEventListener("cancel", (event) => {
  event.preventDefault();
  leaveModal();
});
modal.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]")) leaveModal();
});
modal.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    submitModal();
  }
});

// --- the composer ----------------------------------------------------------------------------------------------------

function compose(form) {
  const box = form.querySelector("textarea");
  const list = form.querySelector("[role=listbox]");
  const key = `draft ${page.as} ${page.channel} ${form.dataset.thread ?? ""}`;
  let active = -1;
  const shown = () => [...list.children].filter((choice) => !choice.hidden);

  const word = () => box.value.slice(0, box.selectionStart).match(/(^\/\S*|(?<=^|\s)[@#]\S*)$/)?.[0] ?? "";

  function suggest() {
    const start = word().toLowerCase();
    for (const choice of list.children) choice.hidden = !start || !choice.dataset.insert.toLowerCase().startsWith(start);
    const some = shown().length > 0;
    list.hidden = !some;
    box.setAttribute("aria-expanded", String(some));
    mark(some ? 0 : -1);
  }

  function mark(index) {
    active = index;
    shown().forEach((choice, at) => choice.setAttribute("aria-selected", String(at === index)));
    const choice = shown()[index];
    if (choice) box.setAttribute("aria-activedescendant", choice.id);
    else box.removeAttribute("aria-activedescendant");
    choice?.scrollIntoView({ block: "nearest" });
  }

  function take(choice) {
    const start = box.selectionStart - word().length;
    box.setRangeText(`${choice.dataset.insert} `, start, box.selectionStart, "end");
    hide();
    remember();
    box.focus();
  }

  function hide() {
    list.hidden = true;
    box.setAttribute("aria-expanded", "false");
    mark(-1);
  }

  function remember() {
    sessionStorage.setItem(key, box.value);
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight, 240)}px`;
    form.classList.toggle("filled", box.value.trim() !== "");
  }

  async function submit() {
    const text = box.value.trim();
    if (!text) return;
    box.value = "";
    hide();
    remember();
    form.querySelector(".trouble")?.remove();
    busy(form, true);
    const thread = form.dataset.thread;
    const path = text.startsWith("/") && !thread ? "/do/command" : "/do/post";
    const trouble = await send(path, { channel: page.channel, text, thread });
    busy(form, false);
    if (!trouble) return;
    if (!box.value) box.value = text;
    remember();
    tell(form, trouble);
  }

  box.addEventListener("input", () => {
    suggest();
    remember();
  });
  box.addEventListener("keydown", (event) => {
    const choices = list.hidden ? [] : shown();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const exact = choices[active]?.dataset.insert === box.value.trim();
    if (choices.length && step) mark((active + step + choices.length) % choices.length);
    else if (choices.length && event.key === "Escape") hide();
    else if (choices.length && (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey && !exact))) take(choices[active]);
    else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit();
    else return;
    event.preventDefault();
  });
  box.addEventListener("blur", () => setTimeout(hide, 150));
  list.addEventListener("mousedown", (event) => {
    event.preventDefault();
    const choice = event.target.closest("[role=option]");
    if (choice) take(choice);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  box.value = sessionStorage.getItem(key) ?? "";
  remember();
}

// --- the frame -------------------------------------------------------------------------------------------------------

function markRead() {
  if (document.visibilityState === "visible" && page.channel !== "home") send("/do/read", { channel: page.channel });
}

function panels() {
  const tools = byId("tools-toggle") ?? document.createElement("button"); // a thread takes the place of the tools
  const wide = matchMedia("(min-width: 1180px)");
  const kept = localStorage.getItem("tools");
  const show = (open) => {
    document.body.dataset.tools = open ? "open" : "closed";
    tools.setAttribute("aria-expanded", String(open));
  };
  show(wide.matches && kept !== "closed");
  tools.addEventListener("click", () => {
    const open = document.body.dataset.tools !== "open";
    show(open);
    localStorage.setItem("tools", open ? "open" : "closed");
  });
  byId("menu").addEventListener("click", () => {
    const open = document.body.classList.toggle("menu-open");
    byId("menu").setAttribute("aria-expanded", String(open));
  });
}

panels();
document.querySelectorAll("form.composer").forEach(compose);
for (const list of document.querySelectorAll(".log, .screen")) list.scrollTop = list.scrollHeight;
document.querySelector(":target")?.scrollIntoView({ block: "center" });
if (modal.firstElementChild) showModal(modal, parse(modal.innerHTML));
if (page.channel === "home") send("/do/home", {}).then((trouble) => trouble && tell(byId("home"), trouble));
else if (matchMedia("(hover: hover)").matches) (byId("thread-box") ?? byId("box"))?.focus();
document.addEventListener("visibilitychange", markRead);
markRead();
countUnread();
listen();
