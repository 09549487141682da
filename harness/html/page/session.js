'use strict';
// Several runs of one machine: all that they measured side by side, and one of them, which the sections below are about.

// [text, tone] of how a run, or a session, ended.
function outcomeOf(results) {
  const { runs, steps } = results;
  const gates = [...results.gates, ...runs.flatMap((run) => run.results.gates)];
  if (results.status !== 'complete') return ['INCOMPLETE', 'bad'];
  if (gates.some((gate) => !gate.passed && !gate.excused)) return ['complete, a gate missed', 'warn'];
  return steps.some((step) => step.outcome !== 'ok') ? ['complete, a step failed', 'warn'] : ['complete', 'good'];
}

// A row for each measurement; one for what was not timed.
function sessionRows(runs) {
  return runs.flatMap((run) => {
    const variants = [...run.results.variants, ...run.results.peers];
    if (variants.length === 0) return [{ run, variant: {}, m: {} }];
    return variants.flatMap((variant) => (variant.measurements.length > 0 ? variant.measurements : [{}]).map((m) => ({ run, variant, m })));
  });
}

function sessionColumns(rows) {
  const figure = (title, value, format) => ({ title, value, text: (row) => (value(row) === null ? '–' : format(value(row))) });
  const percents = (value) => `${digits(value, 2)} %`;
  const text = (title, value) => ({ title, kind: 'text', value, text: (row) => shortened(value(row) ?? '', 60) });
  return [
    text('run', ({ run }) => run.name), text('variant', ({ variant }) => variant.name || null),
    text('runs on', ({ variant }) => (variant.backend ? `${variant.backend} ${variant.isa}` : null)),
    figure('batch', ({ m }) => number(m.batch), String), figure('threads', ({ m }) => number(m.threads), String),
    figure('median, ms', ({ m }) => number(m.latency_ms?.median), ms), figure('on the device', ({ m }) => number(m.device_ms?.median), ms),
    figure('a second', ({ m }) => number(m.device_images_per_second ?? m.images_per_second), (value) => digits(value, value < 100 ? 1 : 0)),
    figure('speedup', ({ m }) => number(m.speedup), times),
    figure('top-1', ({ variant }) => number(variant.top1), percents), figure('bits per byte', ({ variant }) => number(variant.bits_per_byte), (value) => digits(value, 4)),
    figure('weights', ({ variant }) => variant.weight_bytes || null, bytes),
    { title: 'outcome', kind: 'text', value: ({ run }) => outcomeOf(run.results)[0], cell: ({ run }) => {
      const [outcome, tone] = outcomeOf(run.results);
      return el('span', { class: tone, text: outcome });
    } },
  ].filter(({ value }) => rows.some((row) => value(row) !== null));
}

class SessionView {
  constructor(results) {
    this.results = results;
    this.rows = sessionRows(results.runs);
    this.chosen = el('p', { class: 'muted' });
    this.runs = new SortableTable(sessionColumns(this.rows), { pick: ({ run }) => app.show(run), key: ({ run }) => run.name, label: 'Runs' });
    this.printed = el('pre', { id: 'printed', class: 'scroll', tabindex: '0', 'aria-label': 'What the step printed' });
    this.steps = new SortableTable([
      { title: 'stage', kind: 'text', value: (step) => step.stage }, { title: 'step', kind: 'text', value: (step) => step.name },
      { title: 'outcome', kind: 'text', value: (step) => step.outcome, cell: ({ outcome }) => el('span', { class: outcome === 'ok' ? 'good' : 'bad', text: visible(outcome) }) },
      { title: 's', value: (step) => step.seconds },
    ], { pick: (step) => this.print(step), key: (step) => `${step.stage}: ${step.name}`, label: 'Steps' });
    this.element = section('session', 'Session',
      results.error && el('div', { class: 'callout error', text: results.error.split('\n').map(visible).join('\n') }),
      this.rows.length > 0 && [this.runs.element, this.chosen],
      results.steps.length > 0 && [el('h3', { text: 'Steps' }), this.steps.element, this.printed]);
  }

  start() {
    this.runs.show(this.rows);
    this.steps.show(this.results.steps);
    const { steps } = this.results;
    if (steps.length > 0) this.print(this.step || steps.find((step) => step.outcome !== 'ok') || steps[0]);
  }

  mark(run) {
    this.runs.mark(run.name);
    this.chosen.textContent = `All that follows is of the run ${shortened(run.name, 60)}; a click on another row shows that one.`;
  }

  print(step) {
    this.step = step;
    this.steps.mark(`${step.stage}: ${step.name}`);
    this.printed.textContent = step.printed.split('\n').map(visible).join('\n');
    this.printed.scrollTop = 0;
  }
}
