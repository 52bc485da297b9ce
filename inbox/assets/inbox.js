// The inbox works without this script. It adds live updates, keys and five
// seconds in which a decision can still be undone.
"use strict";
(() => {
  const body = document.body, base = body.dataset.base || "", csrf = body.dataset.csrf || "";
  const $ = (q, from) => (from || document).querySelector(q);
  const all = (q) => [...document.querySelectorAll(q)];
  document.documentElement.classList.add("js");
  const status = $("#status");
  const say = (text) => { const p = document.createElement("p"); p.className = "hide"; p.textContent = text; status.append(p); setTimeout(() => p.remove(), 8000); };

  // A decision is held for five seconds in this page; nothing is sent before.
  const holdFor = () => Number(body.dataset.hold || 5) * 1000;
  let held = null;
  const buttons = () => all("form[data-hold] button, .actbar button");
  const release = () => { if (!held) return; clearInterval(held.timer); held.bar.remove(); body.classList.remove("holding"); buttons().forEach((b) => { b.disabled = false; }); held = null; };
  const undo = () => { if (!held) return; const to = held.button; release(); say("Undone. Nothing was decided."); (to || $("h1")).focus(); };
  const hold = (form, button) => {
    if (held) return;
    const bar = document.createElement("div"), text = document.createElement("span"), stop = document.createElement("button");
    bar.className = "held"; bar.setAttribute("role", "status"); stop.type = "button"; stop.textContent = "Undo"; stop.id = "undo";
    bar.append(text, stop); $("main").append(bar); body.classList.add("holding");
    const end = Date.now() + holdFor(), what = form.dataset.hold;
    buttons().forEach((b) => { b.disabled = true; });
    const tick = () => {
      const left = Math.ceil((end - Date.now()) / 1000);
      if (left > 0) { text.textContent = what + " in " + left + " s. Stay on this page."; return; }
      text.textContent = what + "…"; stop.disabled = true; clearInterval(held.timer);
      const sure = document.createElement("input"); sure.type = "hidden"; sure.name = "sure"; sure.value = "1"; form.append(sure);
      held.sent = true; form.submit();
    };
    held = { bar, button, timer: setInterval(tick, 250) };
    stop.addEventListener("click", undo);
    tick(); stop.focus();
  };
  document.addEventListener("submit", (e) => {
    const form = e.target;
    if (!form.dataset.hold || form.dataset.stale) { if (form.dataset.stale) e.preventDefault(); return; }
    e.preventDefault(); hold(form, e.submitter);
  });
  addEventListener("beforeunload", (e) => { if (held && !held.sent) e.preventDefault(); });
  // A page that comes back out of the browser's memory is not what it shows.
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });

  // Relative times, once a minute.
  const unit = (n, w) => n + " " + w + (n === 1 ? "" : "s");
  const spoken = (s) => s < 60 ? unit(Math.floor(s), "second") : s < 3600 ? unit(Math.floor(s / 60), "minute") : s < 172800 ? unit(Math.floor(s / 3600), "hour") : unit(Math.round(s / 86400), "day");
  const times = () => all("time[datetime] [data-relative]").forEach((el) => {
    const d = (Date.parse(el.parentNode.getAttribute("datetime")) - Date.now()) / 1000;
    el.textContent = d > 0 ? "in " + spoken(d) : d > -60 ? "just now" : spoken(-d) + " ago";
  });
  if (!body.dataset.still) setInterval(times, 60000);

  // Live: ids and states. Nothing moves under the cursor.
  const items = $("#items"), article = $("article.request"), run = $("article.run"), news = $("#news"), show = $("#show-news");
  const fresh = new Set(), word = { approved: "approved", spent: "approved and started", denied: "denied", expired: "expired", withdrawn: "withdrawn", stale: "replaced by another request" };
  const count = (n) => {
    if (n < 0) return;
    const text = n > 99 ? "99+" : String(n), badge = $("#count"), icon = $('link[rel="icon"]');
    document.title = (n > 0 ? "(" + text + ") " : "") + document.title.replace(/^\(\d+\+?\) /, "");
    if (badge) { badge.hidden = n === 0; $(".n", badge).textContent = text; }
    if (icon) icon.href = base + "/icon/" + Math.min(n, 100);
  };
  const changed = (text) => { const p = $("#changed"); if (!p.hidden) return; p.textContent = text + " "; const a = document.createElement("a"); a.href = location.pathname; a.textContent = "Show it as it stands"; p.append(a); p.hidden = false; };
  // Nothing more is decided here. What was typed stays where it is.
  const close = (text) => {
    if (held) undo();
    all(".decide form").forEach((f) => { f.dataset.stale = "1"; });
    all(".decide form button, .actbar button").forEach((b) => { b.disabled = true; });
    changed(text);
  };
  const one = (n) => {
    if (items && items.dataset.live === "pending" && n.id) {
      const card = items.querySelector('[data-id="' + CSS.escape(n.id) + '"]');
      if (!card && n.state === "pending" && n.asked >= Number(items.dataset.at)) fresh.add(n.id);
      if (n.state !== "pending") {
        fresh.delete(n.id);
        if (card && !card.classList.contains("gone")) { card.classList.add("gone"); $("[data-state]", card).textContent = "now " + (word[n.state] || n.state); }
      }
    }
    if (article && n.id === article.dataset.id && n.state !== article.dataset.state) {
      article.dataset.state = n.state;
      if (!(held && held.sent)) {
        close("This request is now " + (word[n.state] || n.state) + ".");
      }
    }
    if (run && n.run === run.dataset.run && n.seq > Number(run.dataset.seq)) { changed("The run has gone on."); }
  };
  const tell = (d) => {
    d.news.forEach(one);
    count(d.count);
    if (d.missed) changed("More may have changed than this page was told.");
    if (!items || items.dataset.live !== "pending") return;
    news.hidden = fresh.size === 0;
    if (fresh.size) show.textContent = fresh.size + " new, show";
  };
  if (show) show.addEventListener("click", () => location.reload());
  const wanted = (items && items.dataset.live === "pending" && !/[?&](after|q|tool|agent|kind|show)=[^&]/.test(location.search)) || article || run;
  if (wanted && csrf && window.EventSource) {
    const es = new EventSource(base + "/events?" + (run ? "run=" + encodeURIComponent(run.dataset.run) : article ? "request=" + encodeURIComponent(article.dataset.id) : "since=" + items.dataset.at));
    const take = (e) => tell(JSON.parse(e.data));
    es.addEventListener("all", take); es.addEventListener("news", take);
    es.addEventListener("end", () => { es.close(); location.reload(); });
    addEventListener("pagehide", () => es.close());
  }

  // A request that expires while it is looked at: a word before, with a way to
  // get more time (WCAG 2.2, 2.2.1), and then no decision that comes to nothing.
  if (article && article.dataset.expires) {
    const left = () => Date.parse(article.dataset.expires) - Date.now(), soon = Number(body.dataset.soon || 120) * 1000;
    const later = (ms, f) => { if (ms < 2147483647) setTimeout(f, Math.max(ms, 0)); };
    later(left() - soon, () => {
      if (article.dataset.state !== "pending" || left() <= 0) return;
      const p = $("#changed"), more = $("#extend");
      p.textContent = "This request expires in " + spoken(left() / 1000) + ". ";
      if (more) { const a = document.createElement("a"); a.href = "#extend"; a.textContent = "Give it more time"; a.addEventListener("click", () => { more.open = true; }); p.append(a); }
      p.hidden = false;
    });
    later(left(), () => {
      if (article.dataset.state !== "pending" || held && held.sent) return;
      article.dataset.state = "expired"; $("#changed").hidden = true;
      close("This request has expired. What you typed is still here.");
    });
  }

  // Who else is looking.
  const looking = $("#looking");
  if (article && looking && article.dataset.state === "pending") setInterval(() => {
    if (document.hidden || article.dataset.state !== "pending") return;
    fetch(base + "/a/" + encodeURIComponent(article.dataset.id) + "/look", { method: "POST", headers: { "X-Ringi-CSRF": csrf } }).then((r) => r.ok ? r.json() : null).then((d) => {
      if (!d) return;
      const text = d.looking.length ? d.looking.join(", ") + (d.looking.length === 1 ? " is" : " are") + " looking at this too." : "";
      if (text !== looking.textContent.trim()) looking.textContent = text;
      looking.hidden = !text;
    }).catch(() => {});
  }, Number(body.dataset.look || 15) * 1000);

  // Keys, which can be switched off (WCAG 2.2, 2.1.4).
  const on = () => { try { return localStorage.getItem("ringi-keys") !== "off"; } catch { return true; } };
  const sw = $("#keys-switch");
  if (sw) {
    const b = document.createElement("button"); b.type = "button"; sw.className = ""; sw.textContent = ""; sw.append(b);
    const draw = () => { b.textContent = on() ? "Switch the keys off" : "Switch the keys on"; b.setAttribute("aria-pressed", String(!on())); };
    b.addEventListener("click", () => { try { localStorage.setItem("ringi-keys", on() ? "off" : "on"); } catch { /* not kept */ } draw(); });
    b.removeAttribute("aria-pressed"); draw(); b.removeAttribute("aria-pressed");
  }
  let at = -1;
  const picked = () => {
    const n = all("#pick input:checked").length, b = $(".picked button"); if (!b) return;
    b.textContent = n ? "Decide the " + n + " selected together" : "Decide the selected together";
    b.parentNode.classList.toggle("some", n > 0);
  };
  all("#pick input").forEach((i) => i.addEventListener("change", picked)); picked();
  const move = (by) => {
    const cards = all("#items .card"); if (!cards.length) return;
    cards.forEach((c) => c.classList.remove("at"));
    at = Math.min(Math.max(at + by, 0), cards.length - 1);
    cards[at].classList.add("at"); $("a", cards[at]).focus(); cards[at].scrollIntoView({ block: "nearest" });
  };
  const keys = {
    j: () => move(1), k: () => move(-1),
    a: () => { const b = $("#fact") || $("#approve"); if (b) b.focus(); },
    d: () => { const r = $("#reason"); if (r) r.focus(); },
    e: () => { const l = $('a[data-key="e"]'); if (l) l.click(); },
    x: () => {
      if (held) { undo(); return; }
      const box = $("#items .card.at input[type=checkbox]"); if (!box) return;
      box.checked = !box.checked; picked();
    },
    "/": () => { const q = $("#q"); if (q) q.focus(); else location.href = base + "/"; },
    "?": () => { location.href = base + "/help#keys"; },
  };
  document.addEventListener("keydown", (e) => {
    if (e.key === "Escape" && held) { undo(); return; }
    if (e.ctrlKey || e.metaKey || e.altKey || e.isComposing || e.repeat || !on()) return;
    if (e.target.closest("input, textarea, select, [contenteditable]")) return;
    const f = keys[e.key]; if (f) { e.preventDefault(); f(); }
  });
  // A bar's link goes to the field itself, where its form is.
  all("[data-focus]").forEach((l) => l.addEventListener("click", (e) => {
    const to = $(l.dataset.focus === "decide" ? "#fact, #decide input:not([type=hidden]), #decide button" : "#" + l.dataset.focus);
    if (to) { e.preventDefault(); to.focus({ preventScroll: true }); to.scrollIntoView({ block: "center" }); }
  }));
  // Where the risk is to be looked at, Deny has the focus; else, after a
  // decision, the next request's heading.
  const first = article && article.hasAttribute("data-risky") && !location.hash && $("#deny");
  if ($('[role="alert"]')) { const f = $("[aria-invalid=true]"); if (f) f.focus(); }
  else if (first) first.focus({ preventScroll: true });
  else if ($(".flash")) { const h = $("h1"); h.tabIndex = -1; h.focus({ preventScroll: true }); }
})();
