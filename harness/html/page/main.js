'use strict';
// Puts the sections together, and ties them: what is picked in one is picked in all.

const app = {
  start() {
    const read = (id) => JSON.parse(document.getElementById(id).textContent);
    const results = normalized(read('results'));
    this.session = results.runs.length + results.steps.length > 0 ? new SessionView(results) : null;
    this.run = results.runs[0] || null;
    this.model = new Model(this.run ? this.run.results : results);
    const before = read('before');
    if (before) {
      this.before = new Model(normalized(before));
      this.model.compareGraphs(this.before, read('differences').graphs);
    }
    this.head();
    this.theme();
    this.draw();
    document.addEventListener('keydown', (event) => this.key(event));
    document.addEventListener('scroll', () => tooltip.hide(), true);
    let width = window.innerWidth;
    window.addEventListener('resize', () => {
      if (window.innerWidth === width) return;
      width = window.innerWidth;
      clearTimeout(this.resized);
      this.resized = setTimeout(() => this.redraw(), 150);
    });
  },

  head() {
    const { results } = this.session || this.model;
    const title = results.title || results.config || results.model.path || 'Fuselage report';
    document.title = `${shortened(title, 80)} – Fuselage`;
    document.getElementById('title').textContent = visible(title);
    const [text, tone] = outcomeOf(results);
    const status = document.getElementById('status');
    status.textContent = text;
    status.className = `badge ${tone}`;
    const { environment } = results;
    document.getElementById('subtitle').textContent = [environment.started.replace('T', ' ').replace('Z', ' UTC'), environment.cpu, environment.isa].filter(Boolean).map(visible).join(' · ');
  },

  // A run of the session.
  show(run) {
    this.run = run;
    this.model = new Model(run.results);
    details.hide();
    this.draw();
    document.getElementById('summary').scrollIntoView();
  },

  draw() {
    const views = [this.session, ...(this.session && !this.run ? [] : this.viewsOf(this.model))].filter(Boolean);
    this.views = views;
    document.getElementById('main').replaceChildren(...views.map((view) => view.element));
    const nav = document.getElementById('nav');
    nav.replaceChildren(...views.map(({ element }) => el('a', { href: `#${element.id}`, text: element.getAttribute('aria-label') })));
    for (const view of views) if (view.start) view.start();
    if (this.run) this.session.mark(this.run);
    this.watchSections();
  },

  viewsOf(model) {
    const measured = model.layers.some((layers) => layers.length > 0);
    this.graph = model.steps.length > 0 ? new GraphView(model) : null;
    this.layers = measured ? new LayersView(model) : null;
    this.quantization = QuantizationView.of(model);
    return [
      this.before ? new ComparisonView(model, this.before) : null,
      { element: summarySection(model) },
      SpeedupView.groups(model).length > 0 ? new SpeedupView(model) : null,
      model.results.explanation ? new ExplanationView(model.results.explanation) : null,
      this.graph, this.layers, this.quantization,
      measured && model.peaks ? new RooflineView(model) : null,
      model.passes.length > 0 ? new PassesView(model) : null,
      model.variants.some((variant) => variant.measurements.some((m) => (m.samples_ms || []).length > 0)) ? new LatencyView(model) : null,
      model.variants.some((variant) => (variant.throughput || []).length > 0) ? new ThroughputView(model) : null,
      scheduledThreads(model).length > 0 ? new TimelineView(model) : null,
      model.variants.some((variant) => variant.schedules.some((one) => one.blocks.length > 0)) ? new MemoryView(model) : null,
      model.results.ablation ? new AblationView(model.results.ablation) : null,
      model.results.sensitivity ? new SensitivityView(model.results.sensitivity) : null,
      model.results.search ? new SearchView(model.results.search) : null,
      { element: runSection(model) },
    ];
  },

  watchSections() {
    const links = new Map([...document.querySelectorAll('nav a')].map((link) => [link.getAttribute('href').slice(1), link]));
    const mark = () => {
      const here = [...document.querySelectorAll('main > section')].filter((one) => one.getBoundingClientRect().top < window.innerHeight * 0.4).pop();
      for (const [id, link] of links) link.classList.toggle('here', here !== undefined && here.id === id);
    };
    document.removeEventListener('scroll', this.mark);
    this.mark = mark;
    document.addEventListener('scroll', mark, { passive: true });
    mark();
  },

  // Charts are as wide as the window and have its colours.
  redraw() {
    for (const view of this.views) {
      if (view.drawChart) {
        view.drawChart();
        view.filter();
      } else if (view.paint) {
        view.paint();
      } else if (view.draw) {
        view.draw();
      }
    }
  },

  theme() {
    const button = document.getElementById('theme');
    const system = window.matchMedia('(prefers-color-scheme: dark)');
    let wanted = 'auto';
    try {
      wanted = localStorage.getItem('fuselage-theme') || 'auto';
    } catch (error) {
      // Some browsers keep nothing for a page from disk.
    }
    const apply = () => {
      const dark = wanted === 'dark' || (wanted === 'auto' && system.matches);
      document.documentElement.classList.toggle('dark', dark);
      button.textContent = { auto: '◐ system', light: '☀ light', dark: '☾ dark' }[wanted];
      if (this.views) this.redraw();
    };
    button.addEventListener('click', () => {
      wanted = { auto: system.matches ? 'light' : 'dark', light: 'dark', dark: 'light' }[wanted];
      try {
        localStorage.setItem('fuselage-theme', wanted);
      } catch (error) {
        // As above.
      }
      apply();
    });
    system.addEventListener('change', apply);
    apply();
  },

  // A node or layer was picked, anywhere. `reveal`: brings the graph to it.
  select(name, { step = null, reveal = false, layer = null } = {}) {
    if (name === null) {
      if (layer) this.explainInserted(layer);
      return;
    }
    details.show(this.model, name, step);
    if (this.graph) this.graph.select(name, step);
    if (this.layers) this.layers.mark(name);
    if (this.quantization) this.quantization.mark(name);
    if (reveal && this.graph) this.graph.element.scrollIntoView({ block: 'nearest' });
  },

  // A step without a node: there is only the row to show.
  explainInserted(layer) {
    const drawer = document.getElementById('drawer');
    drawer.replaceChildren(
      el('button', { type: 'button', class: 'close', text: '✕', 'aria-label': 'Close', onclick: () => details.hide() }), el('h2', { text: visible(layer.op) }),
      el('p', { text: 'The runtime inserted this step: a change of layout between two kernels, or a copy.' }), ...details.measurements([layer]));
    drawer.hidden = false;
  },

  showOutside() {
    this.layers.only(['FP32', 'reference']);
    this.layers.element.querySelector('.scroll').scrollIntoView({ block: 'center' });
  },

  key(event) {
    const typing = event.target.matches('input[type="search"], select, textarea');
    if (event.key === 'Escape') {
      if (typing) event.target.blur();
      else details.hide();
    } else if (typing || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    } else if (event.key === '/') {
      const near = event.target.closest?.('section')?.querySelector('input[type="search"]');
      const input = near || document.querySelector('#graph-search, #layer-search');
      if (!input) return;
      event.preventDefault();
      input.focus();
      input.select();
    } else if ((event.key === '[' || event.key === ']') && this.graph) {
      this.graph.go(this.graph.stepIndex + (event.key === ']' ? 1 : -1));
    }
  },
};

// An unfinished run may lack anything: what is not there is empty.
function normalized(results) {
  const lists = ['passes', 'variants', 'peers', 'gates', 'warnings', 'phases', 'graphs', 'runs', 'steps'];
  for (const list of lists) results[list] = results[list] || [];
  for (const variant of [...results.variants, ...results.peers]) {
    for (const list of ['measurements', 'layers', 'schedules']) variant[list] = variant[list] || [];
    for (const text of ['name', 'version', 'backend', 'isa', 'after']) variant[text] = variant[text] || '';
  }
  results.environment = { started: '', cpu: '', isa: '', ...results.environment };
  results.model = results.model || {};
  results.config_text = results.config_text || '';
  for (const run of results.runs) run.results = normalized(run.results || {});
  return results;
}

app.start();
