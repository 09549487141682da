'use strict';
// The figures that a run is made for, and where to look next.

function tile(label, value, note, { tone = '', go = null, id = '' } = {}) {
  return el(go ? 'button' : 'div', { class: 'tile', id: id || undefined, type: go ? 'button' : undefined, onclick: go },
            el('span', { class: 'label', text: label }), el('span', { class: `value ${tone}` }, value),
            el('span', { class: 'note', text: note }));
}

function small(text) {
  return el('small', { text });
}

// That at the first batch and number of threads.
function firstMeasurement(variant) {
  return variant && variant.measurements.length > 0 ? variant.measurements[0] : null;
}

// {label, format, of(variant), lessIsBetter} of what tells how right a variant is; null: nothing does.
function accuracyOf(model) {
  const has = (field) => model.variants.some((variant) => number(variant[field]) !== null);
  const asPercent = (value) => `${digits(value, 2)} %`;
  if (has('top1')) return { label: 'Top-1', field: 'top1', format: asPercent, less: false };
  if (has('bits_per_byte')) return { label: 'Bits per byte', field: 'bits_per_byte', format: (value) => digits(value, 4), less: true };
  if (has('snr_db')) return { label: 'SNR of the outputs', field: 'snr_db', format: (value) => `${digits(value, 1)} dB`, less: false };
  return null;
}

function summaryTiles(model) {
  const { results } = model;
  const [base, main] = [model.variants[0], model.variants[model.main]];
  const [baseM, mainM] = [firstMeasurement(base), firstMeasurement(main)];
  const layers = model.layers[model.main] || [];
  const tiles = [];
  if (mainM) {
    const where = `batch ${mainM.batch}, ${plural(mainM.threads, 'thread')}`;
    const speedup = number(mainM.speedup);
    if (speedup !== null && main !== base) {
      tiles.push(tile(`Speedup of ${shortened(main.name, 24)} over ${shortened(base.name, 24)}`, times(speedup), where, { tone: speedup >= 1 ? 'good' : 'bad' }));
    }
    const before = baseM && main !== base && speedup !== null ? [small(`${ms(baseM.latency_ms.median)} → `)] : [];
    tiles.push(tile('Latency', el('span', {}, ...before, `${ms(mainM.latency_ms.median)} `, small('ms')),
                    `median, ${where}; ${digits(mainM.images_per_second, mainM.images_per_second < 100 ? 1 : 0)} a second`));
  }
  const accuracy = accuracyOf(model);
  if (accuracy && main) {
    const value = number(main[accuracy.field]);
    const old = main !== base ? number(base[accuracy.field]) : null;
    const change = value !== null && Number.isFinite(old) && old !== null ? value - old : null;
    const noted = change === null ? 'against the baseline' : `${change >= 0 ? '+' : '−'}${digits(Math.abs(change), accuracy.less ? 4 : 2)} against ${shortened(base.name, 24)}${main.images ? `, on ${main.images} samples` : ''}`;
    tiles.push(tile(accuracy.label, value === null ? '–' : el('span', {}, change === null ? '' : small(`${accuracy.format(old)} → `), accuracy.format(value)), noted));
  }
  if (main && main.weight_bytes) {
    const old = main !== base && base.weight_bytes ? small(`${bytes(base.weight_bytes)} → `) : '';
    tiles.push(tile('Weights', el('span', {}, old, bytes(main.weight_bytes)), mainM ? `${bytes(mainM.peak_memory_bytes)} with the arena` : 'as packed'));
  }
  const ratio = (peer) => number(firstMeasurement(peer)?.ratio);
  const [fastest] = model.peers.filter((peer) => ratio(peer) !== null).sort((a, b) => ratio(a) - ratio(b));
  if (fastest) {
    tiles.push(tile('Fastest peer', `${times(ratio(fastest))} our time`, `${shortened(fastest.name, 40)} ${visible(fastest.version)} over ${shortened(fastest.compared_with, 40)}`, { tone: ratio(fastest) >= 1 ? 'good' : 'warn' }));
  }
  const slowest = layers.reduce((a, b) => (!a || b.ms > a.ms ? b : a), null);
  if (slowest) {
    tiles.push(tile('Slowest layer', el('span', { class: 'long' }, path(shortened(slowest.label, 70))),
                    `${ms(slowest.ms)} ms, ${percent(slowest.share)} of all; ${slowest.op}, ${slowest.kernel}`,
                    { id: 'slowest', go: () => app.select(slowest.name, { reveal: true }) }));
  }
  const accurate = layers.filter((layer) => layer.snr !== null);
  const worst = accurate.reduce((a, b) => (!a || b.snr < a.snr ? b : a), null);
  if (worst) {
    tiles.push(tile('Least accurate layer', el('span', { class: 'long' }, path(shortened(worst.label, 70))), `SNR ${digits(worst.snr, 1)} dB against ${shortened(base.name, 24)}; ${worst.op}`,
                    { id: 'least-accurate', go: () => app.select(worst.name, { reveal: true }) }));
  }
  if (layers.length > 0) {
    const outside = layers.filter((layer) => layer.place === 'FP32' || layer.place === 'reference');
    const calls = layers.filter((layer) => layer.place !== 'layout' && layer.place !== 'crossing').length;
    const share = d3.sum(outside, (layer) => layer.share);
    tiles.push(tile('Not in INT8', el('span', {}, `${outside.length} `, small(`of ${plural(calls, 'op')}`)),
                    outside.length > 0 ? `${percent(share)} of the time; click for each and why` : 'all of the network runs on codes',
                    { id: 'outside', go: outside.length > 0 ? () => app.showOutside() : null, tone: outside.length > 0 ? 'warn' : 'good' }));
  }
  if (results.gates.length > 0) {
    const missed = results.gates.filter((gate) => !gate.passed && !gate.excused);
    tiles.push(tile('Gates', missed.length === 0 ? 'all hold' : `${missed.length} of ${results.gates.length} missed`, missed.map((gate) => gate.name).join(', ') || plural(results.gates.length, 'gate'),
                    { tone: missed.length === 0 ? 'good' : 'bad' }));
  }
  return el('div', { class: 'tiles' }, tiles);
}

function latencyTable(model) {
  const rows = [];
  for (const variant of [...model.variants, ...model.peers]) {
    for (const m of variant.measurements) rows.push({ variant, m });
  }
  if (rows.length === 0) return null;
  rows.sort((a, b) => a.m.batch - b.m.batch || a.m.threads - b.m.threads);
  const isPeer = (variant) => model.peers.includes(variant);
  const slowest = d3.max(rows, (row) => row.m.latency_ms.median / row.m.batch);
  const bar = (row) => {
    const mark = el('span', { class: 'bar' });
    mark.style.width = `${(6 * row.m.latency_ms.median) / row.m.batch / slowest}em`;
    return mark;
  };
  const columns = [
    ['variant', (r) => shortened(r.variant.name, 60) + (isPeer(r.variant) ? ` ${visible(r.variant.version)}` : ''), 'text'],
    ['batch', (r) => r.m.batch], ['threads', (r) => r.m.threads],
    ['median, ms', (r) => el('span', {}, bar(r), ms(r.m.latency_ms.median))],
    ['p90', (r) => ms(r.m.latency_ms.p90)], ['p99', (r) => ms(r.m.latency_ms.p99)],
    ['a second', (r) => digits(r.m.images_per_second, r.m.images_per_second < 100 ? 1 : 0)],
    ['speedup', (r) => times(number(r.m.speedup))],
    ['predicted', (r) => (number(r.m.predicted_ms) === null ? '–' : `${ms(r.m.predicted_ms)} ms`)],
    ['memory', (r) => bytes(r.m.peak_memory_bytes)],
    ['moved', (r) => bytes(r.m.counted_bytes)],
    ['joules each', (r) => (number(r.m.joules_per_image) === null ? '–' : r.m.joules_per_image.toPrecision(3))],
    ['mg of CO2 each', (r) => (number(r.m.grams_co2_per_image) === null ? '–' : (1e3 * r.m.grams_co2_per_image).toPrecision(3))],
    ['busy elsewhere', (r) => (number(r.m.other_cores_busy) === null ? '–' : `${digits(r.m.other_cores_busy, 2)} cores`)],
  ];
  if (model.peers.length > 0) columns.splice(8, 0, ['over ours', (r) => times(number(r.m.ratio))]);
  const shown = columns.filter(([, cell]) => rows.some((row) => cell(row) !== '–'));
  return el('div', { class: 'scroll' }, el('table', { 'aria-label': 'Latency' },
    el('thead', {}, el('tr', {}, shown.map(([title, , kind]) => el('th', { class: kind || '', text: title })))),
    el('tbody', {}, rows.map((row) => el('tr', {}, shown.map(([, cell, kind]) => el('td', { class: kind || '' }, cell(row))))))));
}

function gateList(model) {
  const { gates } = model.results;
  if (gates.length === 0) return null;
  return el('div', {}, el('h3', { text: 'Gates' }), el('ul', { class: 'plain' }, gates.map((gate) => {
    const [mark, tone] = gate.passed ? ['✓', 'good'] : gate.excused ? ['–', 'muted'] : ['✗', 'bad'];
    const found = gate.judged ? `found ${digits(number(gate.found), 2)}` : 'not judged';
    return el('li', {}, el('b', { class: tone, text: `${mark} ` }), visible(gate.name), el('span', { class: 'muted',
      text: ` ${visible(gate.variant || gate.pass)}: wanted ${gate.wanted}, ${found}${gate.reason ? `; ${visible(gate.reason)}` : ''}` }));
  })));
}

function machine(model) {
  const { environment: e = {}, model: m = {}, dataset: d = {}, calibration: c = {} } = model.results;
  const peaks = model.peaks;
  const rows = [
    ['CPU', `${e.cpu}, ${plural(e.cores, 'core')}, ${e.isa}`],
    ['GPU', e.gpu && e.gpu !== 'none' ? `${e.gpu} ${e.gpu_arch}` : ''],
    ['peaks of a thread', peaks ? `${digits(peaks.int8_ops_per_second / 1e9, 0)} INT8 GOP/s, ${digits(peaks.f32_flops_per_second / 1e9, 0)} GFLOP/s, ${digits(peaks.bytes_per_second / 1e9, 1)} GB/s` : ''],
    ['memory', `${bytes(e.memory_bytes)}; this run ${bytes(number(e.process_peak_rss_bytes))}`],
    ['energy', e.energy_counter ? `${e.energy_counter}; ${e.grams_co2_per_kwh} g CO2/kWh: ${e.co2_source}` : ''],
    ['system', `${e.os}; ${e.compiler}; oneDNN ${e.onednn}`],
    ['commit', e.git_commit],
    ['started', e.started],
    ['network', m.path ? `${m.path}, ${bytes(m.bytes)}` : ''],
    ['data', d.name ? `${d.name}, ${d.split}, ${plural(d.images, d.unit || 'sample')}` : 'random inputs'],
    ['calibration', c.images ? `${plural(c.images, d.unit || 'sample')} of ${c.split}` : ''],
  ];
  return el('div', {}, el('h3', { text: 'Machine and data' }), el('dl', {}, rows.filter(([, text]) => text).flatMap(([term, text]) => [el('dt', { text: term }), el('dd', { text: visible(text) })])));
}

function variantTable(model) {
  const all = [...model.variants, ...model.peers];
  if (all.length === 0) return null;
  const value = (field, format) => (variant) => (number(variant[field]) === null ? '–' : format(number(variant[field])));
  const columns = [
    ['variant', (v) => shortened(v.name, 60), 'text'], ['runs on', (v) => visible(`${v.backend} ${v.isa}`), 'text'],
    ['top-1', value('top1', (x) => `${digits(x, 2)} %`)], ['agrees with baseline', value('agreement_with_fp32', (x) => `${digits(x, 2)} %`)],
    ['bits per byte', value('bits_per_byte', (x) => digits(x, 4))], ['divergence, bits', value('kl_divergence_bits', (x) => digits(x, 4))],
    ['SNR, dB', value('snr_db', (x) => digits(x, 1))], ['codes within one', value('codes_within_one', (x) => `${digits(x, 2)} %`)],
    ['weights', (v) => bytes(v.weight_bytes)],
    ['', (v) => visible(v.not_run ? `not run: ${v.not_run}` : ''), 'text'],
  ].filter(([title, cell], i) => i < 2 || all.some((v) => !['–', ''].includes(cell(v))));
  return el('div', {}, el('h3', { text: model.peers.length > 0 ? 'Variants and peers' : 'Variants' }), el('div', { class: 'scroll free' }, el('table', { 'aria-label': 'Variants' },
    el('thead', {}, el('tr', {}, columns.map(([title, , kind]) => el('th', { class: kind || '', text: title })))),
    el('tbody', {}, all.map((v) => el('tr', {}, columns.map(([, cell, kind]) => el('td', { class: kind || '', text: cell(v) }))))))));
}

function summarySection(model) {
  const { results } = model;
  const busiest = d3.max(model.variants.flatMap((v) => v.measurements), (m) => number(m.other_cores_busy)) || 0;
  const table = latencyTable(model);
  return section('summary', 'Summary',
    results.error && el('div', { class: 'callout error', text: visible(results.error) }),
    summaryTiles(model),
    table && el('h3', { text: 'Latency' }), table,
    table && el('p', { class: busiest > 0.1 ? 'warn' : 'muted', text: busiest > 0.2
      ? `Other programs kept up to ${digits(busiest, 1)} cores busy meanwhile: trust ratios within this run, not milliseconds.` : 'The machine was quiet meanwhile.' }),
    variantTable(model),
    el('div', { class: 'columns' }, el('div', {}, gateList(model), results.warnings.length > 0 && el('div', {}, el('h3', { text: 'Warnings' }),
      el('ul', {}, results.warnings.map((warning) => el('li', { text: visible(warning) }))))), machine(model)));
}
