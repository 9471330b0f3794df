// Colours: report.css owns them (light, dark, print); canvases read them from there.

export interface Theme {
  text: string;
  muted: string;
  line: string;
  panel: string;
  lane: string;
  accent: string;
}

const kPhases = ["forward", "loss", "backward", "update", "recompute"];

function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function theme(): Theme {
  return {
    text: variable("--text"),
    muted: variable("--muted"),
    line: variable("--line"),
    panel: variable("--panel"),
    lane: variable("--lane"),
    accent: variable("--accent"),
  };
}

/// Only names known here reach a style: a phase named by the file never becomes part of CSS.
export function phase_variable(phase: string): string {
  return kPhases.includes(phase) ? `--phase-${phase}` : "--phase-other";
}

export function phase_colour(phase: string): string {
  return variable(phase_variable(phase));
}

export function owner_variable(owner: string): string {
  return `--owner-${owner.replace(/_/g, "-")}`;
}

export function component_variable(component: string): string {
  return `--component-${component.replace(/_/g, "-")}`;
}

/// `moved` is one of kMoved.
export function moved_variable(moved: string): string {
  return `--moved-${moved}`;
}

/// `limit` is one of kLimits.
export function limit_variable(limit: string): string {
  return `--limit-${limit}`;
}

export function colour(name: string): string {
  return variable(name);
}

/// Calls back when the colours change: the system's scheme, or printing (always light).
export function on_theme_change(redraw: () => void, signal: AbortSignal): void {
  const root = document.documentElement;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw, { signal });
  const print = (on: boolean) => () => {
    root.toggleAttribute("data-print", on);
    redraw();
  };
  addEventListener("beforeprint", print(true), { signal });
  addEventListener("afterprint", print(false), { signal });
}
