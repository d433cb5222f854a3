// Fetches the page again every few seconds and puts in what has changed, shows times as this browser tells them, and
// the values of charts under the pointer or the arrow keys. Text goes in as text only: nothing here makes markup.
"use strict";
(() => {
  const live = document.getElementById("live");
  const freshness = document.getElementById("freshness");
  const trouble = document.getElementById("trouble");
  const every = 1000 * Number(live.dataset.refresh || 0);
  let etag = null, paused = false, at = null;

  // ---- news ----
  async function refresh() {
    if (!paused && !document.hidden) {
      try {
        const headers = etag ? { "If-None-Match": etag } : {};
        const answer = await fetch(location.href, { headers, cache: "no-store" });
        if (answer.status === 200) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
          etag = answer.headers.get("etag");
          document.title = fresh.title;
          morph(live, fresh.getElementById("live"));
          enhance();
        } else if (answer.status !== 304) {
          throw new Error(String(answer.status));
        }
        freshness.textContent = "As of " + new Date().toLocaleTimeString() + ". ";
        say("");
      } catch (error) {
        say("The dashboard does not answer; what is shown is of before. Is it still running?");
      }
    }
    setTimeout(refresh, every);
  }

  function say(text) {
    if (trouble.textContent !== text) trouble.textContent = text; // told to screen readers once
  }

  // Makes `old` like `fresh`, in place, so that focus, scrolling, selection and opened parts stay.
  function morph(old, fresh) {
    const own = old.classList.contains("plot") ? ["tabindex", "role", "aria-label"] : old.tagName === "DETAILS" ? ["open"] : [];
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !own.includes(name) && !name.startsWith("aria-value")) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) !== value && !own.includes(name)) old.setAttribute(name, value);
    }
    const byId = new Map([...old.children].filter((one) => one.id).map((one) => [one.id, one]));
    let here = old.firstChild;
    for (const want of [...fresh.childNodes]) {
      const twin = want.id && byId.has(want.id) ? byId.get(want.id) : here;
      if (twin && twin.nodeType === want.nodeType && twin.nodeName === want.nodeName && (twin.id || "") === (want.id || "")) {
        if (twin !== here) old.insertBefore(twin, here); else here = here.nextSibling;
        if (want.nodeType === Node.ELEMENT_NODE) morph(twin, want);
        else if (want.nodeType === Node.TEXT_NODE && twin.data !== want.data && !("shown" in old.dataset)) twin.data = want.data;
      } else {
        old.insertBefore(document.importNode(want, true), here);
      }
    }
    while (here) { const next = here.nextSibling; here.remove(); here = next; }
  }

  function enhance() {
    for (const time of live.querySelectorAll("time")) {
      const at = new Date(time.dateTime), text = isNaN(at) ? time.dateTime : at.toLocaleString();
      if (time.textContent !== text) time.textContent = text;
    }
    for (const plot of live.querySelectorAll(".plot")) {
      plot.tabIndex = 0;
      plot.setAttribute("role", "slider");
      plot.setAttribute("aria-label", plot.dataset.title + ", values");
      const places = placesOf(plot);
      if (!places.length) continue;
      if (!plot.hasAttribute("aria-valuenow")) plot.setAttribute("aria-valuenow", places[places.length - 1]);
      plot.setAttribute("aria-valuemin", places[0]);
      plot.setAttribute("aria-valuemax", places[places.length - 1]);
    }
  }

  // ---- values of charts ----
  const tip = document.createElement("div"), cursor = document.createElement("div");
  tip.id = "tip"; cursor.id = "cursor"; tip.hidden = cursor.hidden = true;
  tip.setAttribute("aria-hidden", "true"); cursor.setAttribute("aria-hidden", "true");
  document.body.append(cursor, tip);

  function seriesOf(plot) {
    return [...plot.querySelectorAll("[data-points]")].map((path) => ({
      name: path.dataset.name,
      points: path.dataset.points.split(" ").filter(Boolean).map((point) => point.split(",").map(Number)),
    }));
  }

  function placesOf(plot) {
    const all = new Set();
    for (const { points } of seriesOf(plot)) for (const [x] of points) all.add(x);
    return [...all].sort((one, other) => one - other);
  }

  function nearest(places, x) {
    return places.reduce((best, one) => (Math.abs(one - x) < Math.abs(best - x) ? one : best), places[0]);
  }

  function show(plot, x) {
    const svg = plot.querySelector("svg"), data = svg.dataset, box = svg.getBoundingClientRect();
    const first = Number(data.first), last = Number(data.last), scale = box.width / svg.viewBox.baseVal.width;
    const share = last > first ? (x - first) / (last - first) : 0.5;
    const left = box.left + scrollX + scale * (Number(data.left) + share * (data.right - data.left));
    const lines = [plot.dataset.xLabel + " " + x];
    for (const { name, points } of seriesOf(plot)) {
      const point = points.find(([at]) => at === x);
      if (point) lines.push(name + ": " + point[1] + (plot.dataset.unit ? " " + plot.dataset.unit : ""));
    }
    tip.textContent = lines.join("\n");
    plot.setAttribute("aria-valuenow", x);
    plot.setAttribute("aria-valuetext", lines.join(", "));
    tip.hidden = cursor.hidden = false;
    cursor.style.left = left + "px";
    cursor.style.top = box.top + scrollY + scale * data.top + "px";
    cursor.style.height = scale * (data.bottom - data.top) + "px";
    const room = document.documentElement.clientWidth;
    tip.style.left = "0";
    tip.style.left = Math.max(4, left + 12 + tip.offsetWidth > room ? left - 12 - tip.offsetWidth : left + 12) + "px";
    tip.style.top = box.top + scrollY + 4 + "px";
    at = { plot, x };
  }

  function hide() { tip.hidden = cursor.hidden = true; at = null; }

  document.addEventListener("pointermove", (event) => {
    const plot = event.target instanceof Element && event.target.closest(".plot");
    if (!plot) { if (at && at.plot !== document.activeElement) hide(); return; }
    const svg = plot.querySelector("svg"), data = svg.dataset, box = svg.getBoundingClientRect();
    const inside = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    const share = (inside - data.left) / (data.right - data.left);
    show(plot, nearest(placesOf(plot), Number(data.first) + share * (data.last - data.first)));
  });

  document.addEventListener("keydown", (event) => {
    const plot = document.activeElement;
    if (!plot || !plot.classList.contains("plot") || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape") { hide(); return; }
    const places = placesOf(plot), here = places.indexOf(nearest(places, Number(plot.getAttribute("aria-valuenow"))));
    const to = { ArrowLeft: here - 1, ArrowDown: here - 1, ArrowRight: here + 1, ArrowUp: here + 1,
      PageDown: here - 10, PageUp: here + 10, Home: 0, End: places.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(plot, places[Math.max(0, Math.min(places.length - 1, to))]);
  });
  document.addEventListener("focusout", hide);
  addEventListener("resize", hide);

  enhance();
  if (every) {
    freshness.textContent = "As of " + new Date().toLocaleTimeString() + ". ";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Stop updating";
    button.addEventListener("click", () => {
      paused = !paused;
      button.textContent = paused ? "Go on updating" : "Stop updating";
    });
    freshness.after(button);
    setTimeout(refresh, every);
  }
})();
