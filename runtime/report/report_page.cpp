#include "report/report_page.h"

namespace st {

const std::string_view kReportStyle = R"css(
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #fff; --ink: #171a21; --soft: #5d6575; --faint: #e6e9ef; --edge: #dfe3ea;
  --blue: #2563eb; --haze: #a9c4f8; --orange: #dd6b10; --green: #0d9468; --violet: #7c4ddb; --red: #d43a3a; }
@media (prefers-color-scheme: dark) { :root {
  --page: #0f1217; --card: #171b22; --ink: #e8ebf1; --soft: #98a1b2; --faint: #252b35; --edge: #272d38;
  --blue: #6ea0ff; --haze: #33507f; --orange: #f79a4b; --green: #3cc295; --violet: #ab8bf5; --red: #f27474; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 40px 20px 56px; }
h1 { margin: 0; font-size: 28px; line-height: 1.2; letter-spacing: -.02em; }
h2 { margin: 0 0 2px; font-size: 15px; font-weight: 600; }
p { margin: 0; }
.sub { color: var(--soft); margin-top: 6px; }
.verdict { margin-top: 14px; padding-left: 12px; border-left: 3px solid var(--green); }
.verdict.above { border-color: var(--orange); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(128px, 1fr)); gap: 12px; margin: 26px 0 16px; }
.card, .tile { background: var(--card); border: 1px solid var(--edge); border-radius: 12px; }
.tile { padding: 13px 15px; }
.tile b { display: block; font-size: 21px; line-height: 1.3; font-weight: 650; letter-spacing: -.01em; font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 13px; }
.grid2 { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 16px; margin-top: 16px; }
.card { padding: 16px 18px 12px; margin: 0; position: relative; min-width: 0; }
.note { color: var(--soft); font-size: 13px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; color: var(--soft); font-size: 13px; margin-bottom: 6px; }
.legend i { display: inline-block; width: 16px; height: 3px; border-radius: 2px; margin-right: 6px; vertical-align: middle; background: currentColor; }
.wide { overflow-x: auto; }
.wide svg { min-width: 680px; }
svg { display: block; width: 100%; height: auto; touch-action: pan-y; }
.grid { stroke: var(--faint); } .axis { stroke: var(--edge); }
.tick { fill: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
.level { stroke: var(--soft); stroke-dasharray: 5 5; } .mark { stroke: var(--red); stroke-width: 2; }
.rule { stroke: var(--soft); stroke-dasharray: 2 3; visibility: hidden; }
.line { fill: none; stroke: currentColor; stroke-width: 1.7; stroke-linejoin: round; stroke-linecap: round; }
.raw { color: var(--haze); } .line.raw { stroke-width: 1.1; }
.loss { color: var(--blue); } .line.loss { stroke-width: 2.2; }
.validation { color: var(--orange); } .line.validation { stroke-width: 2.2; }
.line.lone { stroke-width: 6; } .line.dots { marker: url(#dot); }
.rate { color: var(--violet); } .norm { color: var(--blue); } .speed { color: var(--green); }
.tip { position: absolute; z-index: 1; pointer-events: none; visibility: hidden; top: 64px; padding: 6px 10px; border-radius: 8px; background: var(--ink); color: var(--page);
  font-size: 12.5px; line-height: 1.45; white-space: nowrap; font-variant-numeric: tabular-nums; }
.lanes { margin-top: 16px; }
.computing { fill: var(--blue); color: var(--blue); } .exposed { fill: var(--orange); color: var(--orange); } .beside { color: var(--haze); }
.forward { fill: var(--blue); color: var(--blue); } .backward { fill: var(--green); color: var(--green); } .weight { fill: var(--violet); color: var(--violet); }
.lanes path { stroke: var(--card); stroke-width: .8; } .number { fill: var(--card); font-size: 12px; text-anchor: middle; font-variant-numeric: tabular-nums; } .later { text-decoration: underline; }
.hatch { fill: url(#hatch); } #hatch path { stroke: var(--haze); stroke-width: 5; }
.bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: 9px 14px; align-items: center; margin: 12px 0 8px; font-size: 14px; }
.bars div { height: 12px; border-radius: 6px; background: var(--faint); overflow: hidden; }
.bars div i { display: block; height: 100%; min-width: 3px; border-radius: 6px; background: var(--blue); }
.bars b { font-weight: 500; font-variant-numeric: tabular-nums; text-align: right; }
pre { margin: 8px 0 6px; white-space: pre-wrap; overflow-wrap: anywhere; font: 13.5px/1.55 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
pre b { color: var(--blue); font-weight: 600; }
table { width: 100%; border-collapse: collapse; margin-top: 6px; font-size: 14px; }
td { padding: 5px 0; border-top: 1px solid var(--faint); vertical-align: top; overflow-wrap: anywhere; }
tr:first-child td { border-top: 0; }
td:first-child { color: var(--soft); padding-right: 16px; white-space: nowrap; }
td:last-child { text-align: right; font-variant-numeric: tabular-nums; }
footer { margin-top: 26px; color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
@media print { body { background: none; } .card, .tile { break-inside: avoid; } }
)css";

const std::string_view kReportScript = R"js(
for (const figure of document.querySelectorAll('figure')) {
  const svg = figure.querySelector('svg'), tip = figure.querySelector('.tip'), rule = figure.querySelector('.rule');
  if (!svg || !svg.dataset.axes) continue;
  const [left, right, top, foot, x0, x1, y0, y1, log] = svg.dataset.axes.split(' ').map(Number);
  const value = (p, from, to, low, high, l) => { const t = (p - from) / (to - from); return l ? low * (high / low) ** t : low + t * (high - low); };
  const series = [...svg.querySelectorAll('[data-name]')].map(path => ({ name: path.dataset.name,
    points: [...path.getAttribute('d').matchAll(/([\d.]+) ([\d.]+)/g)].map(m => [+m[1], +m[2]]) })).filter(s => s.points.length);
  const show = event => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width, at = (event.clientX - box.left) * scale;
    const near = series.map(s => s.points.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a));
    const x = near.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a)[0];
    const lines = series.map((s, i) => Math.abs(near[i][0] - x) < 12 ? s.name + ' ' + +value(near[i][1], foot, top, y0, y1, log).toPrecision(4) : '').filter(Boolean);
    tip.textContent = '';
    for (const line of ['step ' + Math.round(value(x, left, right, x0, x1, 0)), ...lines]) tip.append(line, document.createElement('br'));
    rule.setAttribute('x1', x); rule.setAttribute('x2', x);
    const start = box.left - figure.getBoundingClientRect().left + x / scale;
    tip.style.left = (start + tip.offsetWidth + 24 > figure.clientWidth ? start - tip.offsetWidth - 10 : start + 12) + 'px';
    tip.style.visibility = rule.style.visibility = 'visible';
  };
  svg.addEventListener('pointermove', show);
  svg.addEventListener('pointerleave', () => { tip.style.visibility = rule.style.visibility = 'hidden'; });
}
)js";

}  // namespace st
