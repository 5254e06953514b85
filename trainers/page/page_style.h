// The style of a report: light, dark, and for print.
#pragma once

namespace lockstep::trainers {

// CSS. Charts take their colors from its variables: --c0 to --c7 for series.
inline constexpr const char* kPageStyle = R"css(
:root{--bg:#f6f7f9;--card:#fff;--ink:#171b23;--muted:#636b7a;--line:#e3e6eb;--grid:#eceef2;
--soft:#f0f2f6;
--good:#15803d;--warn:#b45309;--bad:#b91c1c;
--c0:#2563eb;--c1:#ea580c;--c2:#0d9488;--c3:#9333ea;--c4:#b88a00;--c5:#db2777;--c6:#0891b2;
--c7:#6b7280}
@media (prefers-color-scheme:dark){:root{--bg:#0f1218;--card:#171b23;--ink:#e6e9ef;--muted:#98a1b0;
--line:#272d38;
--grid:#232934;--soft:#1d222c;--good:#4ade80;--warn:#fbbf24;--bad:#f87171;
--c0:#6ea8fe;--c1:#fb923c;--c2:#2dd4bf;--c3:#c084fc;--c4:#eab308;--c5:#f472b6;--c6:#22d3ee;
--c7:#9ca3af}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);line-height:1.5;font-size:15px;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;
-webkit-font-smoothing:antialiased;font-variant-numeric:tabular-nums}
main{max-width:1120px;margin:0 auto;padding:40px 24px 64px}
header{margin-bottom:24px}
h1{font-size:26px;line-height:1.2;margin:0 0 8px;letter-spacing:-.015em;overflow-wrap:anywhere}
h2{font-size:18px;margin:40px 0 12px;letter-spacing:-.01em}
h3{font-size:14px;margin:0}
.sub{color:var(--muted);margin:0;overflow-wrap:anywhere}
.note{color:var(--muted);font-size:13px;margin:-6px 0 12px;max-width:80ch}
.verdict{font-size:17px;line-height:1.55;max-width:76ch;margin:20px 0 0}
.chip{display:inline-block;font-size:12px;font-weight:600;padding:2px 10px;border-radius:99px;
vertical-align:4px;
margin-left:10px;border:1px solid currentColor}
.chip.good{color:var(--good)}.chip.warn{color:var(--warn)}.chip.bad{color:var(--bad)}
.card{background:var(--card);border:1px solid var(--line);border-radius:12px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;
margin:24px 0 0}
.tile{padding:14px 16px}.tile b{display:block;font-size:23px;line-height:1.25;
letter-spacing:-.02em;font-weight:650}
.tile span{color:var(--muted);font-size:12.5px}
.grid{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:16px}
figure{margin:0;padding:16px 16px 8px;break-inside:avoid}
figure.wide{grid-column:1/-1}
figcaption{display:flex;flex-wrap:wrap;gap:2px 14px;align-items:baseline;margin-bottom:8px}
figcaption b{font-size:14px}figcaption .unit{color:var(--muted);font-size:12.5px}
.legend{margin-left:auto;display:flex;flex-wrap:wrap;gap:0 14px;font-size:12.5px;
color:var(--muted);min-width:0}
.legend i{display:inline-block;width:14px;height:3px;border-radius:2px;margin-right:6px;
vertical-align:3px}
.legend i.box{height:10px;width:10px;vertical-align:-1px}
.legend span{overflow-wrap:anywhere}
svg{display:block;width:100%;height:auto;overflow:visible}
svg text{font-size:11.5px;fill:var(--muted);font-family:inherit}
svg text.in{fill:var(--ink)}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{font-weight:600;text-align:left;color:var(--muted);font-size:12.5px}
th,td{padding:7px 14px;border-bottom:1px solid var(--line);vertical-align:top}
tbody tr:last-child td{border-bottom:0}
td{overflow-wrap:anywhere}
.num{text-align:right;white-space:nowrap}
.scroll{overflow-x:auto}
.facts{margin:0;padding:6px 16px;display:grid;grid-template-columns:repeat(2,minmax(0,1fr));
column-gap:32px;font-size:13.5px}
.facts div{display:flex;gap:16px;justify-content:space-between;padding:6px 0;
border-bottom:1px solid var(--grid)}
.facts dt{color:var(--muted);white-space:nowrap}.facts dd{margin:0;text-align:right;
overflow-wrap:anywhere;min-width:0}
code,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;
font-size:12.5px}
pre{margin:0;padding:12px 16px;white-space:pre-wrap;overflow-wrap:anywhere}
details{margin-top:12px}summary{cursor:pointer;color:var(--muted);font-size:13.5px;
margin-bottom:8px}
.wrong{display:grid;grid-template-columns:repeat(5,minmax(0,1fr));gap:12px}
.wrong figure{padding:12px}.wrong img{width:100%;aspect-ratio:1;object-fit:contain;
image-rendering:pixelated;
border-radius:6px;background:var(--soft);display:block;margin-bottom:8px}
.wrong p{margin:0;font-size:12.5px;color:var(--muted);overflow-wrap:anywhere}
.wrong p b{color:var(--ink);font-size:13.5px}
.matrix{border-collapse:separate;border-spacing:2px;width:auto;font-size:12px}
.matrix td,.matrix th{padding:0;border:0;text-align:center;min-width:40px;height:30px;
vertical-align:middle;border-radius:4px}
.matrix th{padding:0 6px;white-space:nowrap;overflow-wrap:normal}
footer{margin-top:48px;color:var(--muted);font-size:12.5px}
@media (max-width:820px){.grid,.facts{grid-template-columns:minmax(0,1fr)}
.wrong{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media print{@page{margin:14mm}
:root{--bg:#fff;--card:#fff;--ink:#111;--muted:#555;--line:#d4d7dd;--grid:#e6e8ec;--soft:#f2f3f6;
--good:#15803d;--warn:#b45309;--bad:#b91c1c;
--c0:#2563eb;--c1:#ea580c;--c2:#0d9488;--c3:#9333ea;--c4:#b88a00;--c5:#db2777;--c6:#0891b2;
--c7:#6b7280}
body{font-size:11px}main{max-width:none;padding:1px}.verdict{font-size:13px}h1{font-size:20px}
h2{font-size:14px;margin:22px 0 8px}h2,.note{break-after:avoid}
.tiles{grid-template-columns:repeat(6,minmax(0,1fr));gap:8px}.tile b{font-size:15px}
.tile{padding:8px 10px}
.tile span,figcaption .unit,.legend{font-size:10px}figcaption b{font-size:12px}.grid{gap:10px;
grid-template-columns:repeat(2,minmax(0,1fr))}
.facts{grid-template-columns:repeat(2,minmax(0,1fr))}
.wrong{grid-template-columns:repeat(5,minmax(0,1fr))}
.card{break-inside:avoid;border-radius:6px}.card.scroll{break-inside:auto;overflow:visible}
tr{break-inside:avoid}
table,.facts{font-size:10.5px}th,td{padding:4px 8px}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
)css";

}  // namespace lockstep::trainers
