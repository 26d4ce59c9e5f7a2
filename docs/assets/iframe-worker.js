/* Workers for pages that are opened as files: browsers allow them only from a server. The theme's
   search asks for a worker; here it gets a hidden frame that runs the same script. */
"use strict";
(() => {
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.url = String(url);
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "Search";
      document.body.append(this.frame);
      this.ready = new Promise((resolve) => {
        this.frame.addEventListener("load", resolve, { once: true });
      });
      const inside = this.frame.contentWindow;
      this.receive = (event) => {
        if (event.source !== inside) return;
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
        if (this.onmessage) this.onmessage(event);
      };
      window.addEventListener("message", this.receive);
      const address = this.url.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
      inside.document.open();
      inside.document.write(`<!doctype html><html><body><script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...urls) => urls.reduce((done, url) => done.then(() =>
          new Promise((resolve) => {
            const script = document.createElement("script");
            script.src = url;
            script.addEventListener("load", resolve);
            document.body.append(script);
          })), Promise.resolve());
      </script><script src="${address}"></script></body></html>`);
      inside.document.close();
    }

    postMessage(data) {
      this.ready.then(() => {
        const inside = this.frame.contentWindow;
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      });
    }

    terminate() {
      window.removeEventListener("message", this.receive);
      this.frame.remove();
    }
  }

  window.IFrameWorker = IFrameWorker; // the script of the search looks for this name
  window.Worker = IFrameWorker;
})();
