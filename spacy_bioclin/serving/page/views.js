// Tabs, language and theme.

export class Tabs {
  constructor(list, onChange) {
    this.tabs = [...list.querySelectorAll("[role=tab]")];
    this.onChange = onChange;
    for (const tab of this.tabs) tab.addEventListener("click", () => this.choose(tab));
    list.addEventListener("keydown", (event) => {
      const tabs = this.tabs.filter((tab) => !tab.hidden && !tab.disabled);
      const at = tabs.indexOf(event.target);
      const n = tabs.length;
      const goals = { ArrowRight: (at + 1) % n, ArrowLeft: (at + n - 1) % n, Home: 0, End: n - 1 };
      if (at < 0 || !(event.key in goals)) return;
      event.preventDefault();
      this.choose(tabs[goals[event.key]]);
      tabs[goals[event.key]].focus();
    });
  }

  choose(chosen) {
    for (const tab of this.tabs) {
      const isChosen = tab === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !isChosen;
    }
    this.onChange();
  }
}

export function switchTheme(select) {
  const root = document.documentElement;
  select.addEventListener("change", () => {
    root.style.colorScheme = select.value;
  });
}
