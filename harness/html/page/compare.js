'use strict';
// These results against those of another run.

function comparisonSection(model, before) {
  const rows = [];
  const add = (what, old, now, format, lessIsBetter) => {
    if (old === null || now === null || !Number.isFinite(old) || !Number.isFinite(now)) return;  // Equal outputs: the SNR is infinite.
    rows.push({ what, old, now, format, change: old === 0 ? 0 : now / old - 1, better: lessIsBetter ? now < old : now > old });
  };
  for (const variant of model.variants) {
    const other = before.variants.find((one) => one.name === variant.name);
    if (!other) continue;
    const name = shortened(variant.name, 60);
    const fixed = (places, unit = '') => (value) => `${digits(value, places)}${unit}`;
    for (const m of variant.measurements) {
      const old = other.measurements.find((one) => one.batch === m.batch && one.threads === m.threads);
      if (!old) continue;
      add(`${name}: median, batch ${m.batch}, ${plural(m.threads, 'thread')}`, old.latency_ms.median, m.latency_ms.median, (value) => `${ms(value)} ms`, true);
    }
    add(`${name}: top-1`, number(other.top1), number(variant.top1), fixed(2, ' %'), false);
    add(`${name}: bits per byte`, number(other.bits_per_byte), number(variant.bits_per_byte), fixed(4), true);
    add(`${name}: SNR of the outputs`, number(other.snr_db), number(variant.snr_db), fixed(1, ' dB'), false);
    add(`${name}: weights`, other.weight_bytes, variant.weight_bytes, bytes, true);
  }
  const layers = [];
  const oldLayers = new Map((before.layers[before.main] || []).filter((layer) => layer.name !== '').map((layer) => [layer.name, layer]));
  for (const layer of model.layers[model.main] || []) {
    const old = oldLayers.get(layer.name);
    if (old) layers.push({ layer, old, gained: layer.ms - old.ms });
  }
  layers.sort((a, b) => Math.abs(b.gained) - Math.abs(a.gained));
  const tone = (row) => (Math.abs(row.change) < 1e-9 ? 'muted' : row.better ? 'good' : 'bad');
  const signed = (share) => `${share >= 0 ? '+' : '−'}${Math.abs(100 * share).toFixed(1)} %`;
  const head = (titles) => el('thead', {}, el('tr', {}, titles.map((title) => el('th', { class: ['figure', 'layer', 'kernel'].includes(title) ? 'text' : '', text: title }))));
  return section('comparison', 'Comparison',
    el('p', { class: 'muted', text: `against the run of ${visible(before.results.environment.started)} on ${visible(before.results.environment.cpu)}` }),
    el('div', { class: 'scroll free' }, el('table', { 'aria-label': 'Comparison' }, head(['figure', 'before', 'now', 'change']),
      el('tbody', {}, rows.map((row) => el('tr', {}, el('td', { class: 'text', text: row.what }), el('td', { text: row.format(row.old) }), el('td', { text: row.format(row.now) }), el('td', {}, el('b', { class: tone(row), text: signed(row.change) }))))))),
    layers.length > 0 && el('h3', { text: 'Layers that changed most' }),
    layers.length > 0 && el('div', { class: 'scroll' }, el('table', { 'aria-label': 'Layers compared' }, head(['layer', 'before, ms', 'now, ms', 'change, ms', 'kernel']),
      el('tbody', {}, layers.slice(0, 40).map(({ layer, old, gained }) => el('tr', {},
        el('td', { class: 'text' }, el('button', { type: 'button', class: 'link', text: shortened(layer.label, 80), onclick: () => app.select(layer.name, { reveal: false }) })),
        el('td', { text: ms(old.ms) }), el('td', { text: ms(layer.ms) }), el('td', { class: gained > 0 ? 'bad' : 'good', text: `${gained > 0 ? '+' : '−'}${ms(Math.abs(gained))}` }),
        el('td', { class: 'text', text: visible(old.kernel === layer.kernel ? layer.kernel : `${old.kernel} → ${layer.kernel}`) })))))));
}
