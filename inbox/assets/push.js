// The page of one's own settings: subscribes this browser to web push. All else
// on the page works without it.
"use strict";
(() => {
  const box = document.getElementById("this-device"), base = document.body.dataset.base || "", csrf = document.body.dataset.csrf || "";
  const zone = document.getElementById("zone");
  if (zone && !zone.value && !zone.dataset.set) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  if (!box) return;
  const say = document.getElementById("device-says"), on = document.getElementById("device-on"), off = document.getElementById("device-off");
  const tell = (text) => { say.textContent = text; };
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const digest = async (text) => [...new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)))].map((b) => b.toString(16).padStart(2, "0")).join("");
  const post = (path, values) => fetch(base + path, { method: "POST", body: new URLSearchParams({ csrf, ...values }), redirect: "manual" });
  const send = async (sub) => {
    const s = sub.toJSON();
    const r = await post("/me/device", { endpoint: s.endpoint, p256dh: s.keys.p256dh, auth: s.keys.auth });
    if (r.type !== "opaqueredirect" && !r.ok) throw new Error("The server does not take this device.");
  };
  const same = (sub) => { const k = sub.options && sub.options.applicationServerKey; return !k || btoa(String.fromCharCode(...new Uint8Array(k))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "") === box.dataset.key; };

  const start = async () => {
    const worker = await navigator.serviceWorker.register(base + "/sw.js", { scope: base + "/" });
    const sub = await worker.pushManager.getSubscription();
    const item = sub && document.querySelector('[data-device="' + await digest(sub.endpoint) + '"]');
    if (item) { item.append(" (this one)"); off.hidden = false; tell("This device is notified."); } else { on.hidden = false; tell("This device is not notified."); }
    on.addEventListener("click", async () => {
      on.disabled = true;
      try {
        if (await Notification.requestPermission() !== "granted") throw new Error("This browser was told not to show notices of this page. Its settings can change that.");
        await navigator.serviceWorker.ready;
        let s = await worker.pushManager.getSubscription();
        if (s && !same(s)) { await s.unsubscribe(); s = null; }
        await send(s || await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(box.dataset.key) }));
        location.href = base + "/me?done=added";
      } catch (e) { tell(e.message || "It did not work."); on.disabled = false; }
    });
    off.addEventListener("click", async () => {
      off.disabled = true;
      try {
        await sub.unsubscribe();
        await post("/me/device/remove", { id: item.dataset.id });
        location.href = base + "/me?done=removed";
      } catch (e) { tell(e.message || "It did not work."); off.disabled = false; }
    });
  };
  if (!("serviceWorker" in navigator) || !("PushManager" in window) || !("Notification" in window)) {
    tell(/iPhone|iPad/.test(navigator.userAgent) ? "On this device, first add this page to the home screen and open it from there." : "This browser has no web push, or this page was not opened over https.");
  } else start().catch((e) => tell(e.message || "It did not work."));
})();
