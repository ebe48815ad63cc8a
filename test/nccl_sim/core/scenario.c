/* Reading a scenario file. Grammar: docs/simulator.md; states, ownership and failure: scenario.h. */
#include "scenario_parser.h"

#include <errno.h>
#include <string.h>

#include "settings.h"

static void do_block(struct ni_parser_state *p, enum ni_verb verb) {
  if (p->block)
    ni_bad(p, "a group or graph is open: close it with `end` first");
  int graph = -1;
  if (verb == NI_DO_GRAPH) {
    const char *name = ni_arg_text(p, "as", "g");
    graph = p->scn->n_graphs++;
    if (graph >= 16)
      ni_bad(p, "more than 16 graphs");
    snprintf(p->graph_names[graph], sizeof p->graph_names[0], "%s", name);
  }
  int comm = ni_arg_comm(p);
  struct ni_step *st = ni_scn_add_step(p, verb);
  st->comm = comm;
  st->graph = graph;
  ni_scn_step_keys(p, st);
  st->user_group = true;
  p->block_plans = (int)ni_arg_num(p, "plans", 1, 1, 64);
  p->block_fused = ni_arg_num(p, "fused", 0, 0, 1) != 0;
  st->plans = ni_xalloc((size_t)p->block_plans * sizeof *st->plans);
  st->n_plans = 1;
  p->block = st;
}

/* Spreads the tasks collected in plan 0 over the plans, in order. */
static void close_block(struct ni_parser_state *p) {
  struct ni_step *st = p->block;
  struct ni_plan *first = &st->plans[0];
  int n = first->n_tasks, plans = p->block_plans;
  if (n < plans)
    ni_bad(p, "plans=%d: the group has only %d operations", plans, n);
  struct ni_task *all = first->tasks;
  for (int i = 0, at = 0; i < plans; i++) {
    int k = n * (i + 1) / plans - at;
    while (at + k < n && all[at + k].paired)
      k++; /* both directions of a round are one device work */
    if (k <= 0)
      ni_bad(p, "plans=%d: too many for this group's rounds", plans);
    struct ni_plan *plan = &st->plans[i];
    *plan = (struct ni_plan){.tasks = ni_xalloc((size_t)k * sizeof *all), .n_tasks = k};
    memcpy(plan->tasks, all + at, (size_t)k * sizeof *all);
    for (int t = 0; t < k; t++) {
      struct ni_task *task = &plan->tasks[t];
      if (p->block_fused)
        task->paired = t > 0; /* a fused batch lies in one plan */
      if (task->symmetric != plan->tasks[0].symmetric)
        ni_bad(p, "a plan's operations are all symmetric or none is: plans=N parts them");
      if (!task->symmetric || t == 0)
        continue;
      if (task->func != plan->tasks[0].func)
        ni_bad(p, "one symmetric kernel has one function: plans=N parts them");
      task->fused_tail = task->paired = true; /* the operations of a symmetric plan are one kernel */
      task->variant = plan->tasks[0].variant;
      task->algo = plan->tasks[0].algo;
      task->n_ch = plan->tasks[0].n_ch;
    }
    at += k;
  }
  free(all);
  st->n_plans = plans;
  p->block = NULL;
}

static void do_comm(struct ni_parser_state *p) {
  struct ni_scn *s = p->scn;
  if (!p->name)
    ni_bad(p, "comm needs a name");
  int copies = (int)ni_arg_num(p, "copies", 1, 1, 100000);
  for (int k = 0; k < copies; k++) {
    /* counted when it is whole: it cannot name itself */
    s->comms = ni_grow(s->comms, (size_t)s->n_comms, sizeof *s->comms);
    struct ni_comm_decl *c = &s->comms[s->n_comms];
    c->share = -1;
    if (copies > 1)
      snprintf(c->name, sizeof c->name, "%.40s%d", p->name, k);
    else
      snprintf(c->name, sizeof c->name, "%.60s", p->name);
    const char *share = ni_arg_text(p, "share", NULL);
    if (share)
      c->share = ni_arg_find_comm(p, share);
    char all[32];
    snprintf(all, sizeof all, "0-%d", s->set.ranks - 1);
    c->ranks = ni_arg_ranks(p, ni_arg_text(p, "ranks", all), &c->n_ranks);
    const char *label = ni_arg_text(p, "label", c->name);
    c->label = strcmp(label, "-") == 0 ? NULL : strdup(label);
    int per = s->set.ranks / s->set.nodes ? s->set.ranks / s->set.nodes : 1, nodes = 1;
    for (int i = 1; i < c->n_ranks; i++)
      nodes += c->ranks[i] / per != c->ranks[i - 1] / per;
    c->live = (int)ni_arg_num(p, "live", c->n_ranks, 1, c->n_ranks);
    int virt =
        /* ranks beyond those listed keep up by themselves */
        (int)ni_arg_num(p, "size", c->n_ranks, c->n_ranks, 1e6);
    c->n_ranks = virt;
    c->n_nodes = (int)ni_arg_num(p, "nodes", nodes, 1, 4096);
    s->n_comms++;
  }
}

static void do_comms(struct ni_parser_state *p, enum ni_verb verb) {
  if (!p->name)
    ni_bad(p, "name the communicators: a list with commas, or * for all");
  struct ni_step *st = ni_scn_add_step(p, verb);
  st->comms = ni_xalloc((size_t)p->scn->n_comms * sizeof(int));
  if (strcmp(p->name, "*") == 0)
    for (int i = 0; i < p->scn->n_comms; i++)
      st->comms[st->n_comms++] = i;
  else
    for (char *save = NULL, *w = strtok_r(p->name, ",", &save); w && st->n_comms < p->scn->n_comms;
         w = strtok_r(NULL, ",", &save))
      st->comms[st->n_comms++] = ni_arg_find_comm(p, w);
  st->concurrent = ni_arg_num(p, "concurrent", 0, 0, 1) != 0;
  if (verb == NI_DO_INIT)
    for (int i = 0; i < st->n_comms; i++)
      p->scn->comms[st->comms[i]].explicit_init = true;
}

static void do_verb(struct ni_parser_state *p, const char *verb) {
  struct ni_step *st;
  if (p->name && strcmp(p->name, "*") == 0 && strcmp(verb, "coll") == 0) { /* one after the other */
    for (int i = 0; i < p->scn->n_comms; i++) {
      p->name = p->scn->comms[i].name;
      ni_scn_coll(p);
    }
    return;
  }
  if (strcmp(verb, "set") == 0) {
    for (int i = 0; i < p->n_args; i++) {
      char why[256];
      p->args[i].used = true;
      const char *value = ni_arg_expand(p, p->args[i].value);
      for (int k = 0; k < p->n_vars; k++)
        if (p->vars[k].fixed && strcmp(p->vars[k].name, p->args[i].key) == 0) {
          value = p->vars[k].value;
          p->vars[k].used = true;
        }
      if (!ni_settings_set(&p->scn->set, p->args[i].key, value, why, sizeof why))
        ni_bad(p, "no setting `%s`: see nccl-sim --help", p->args[i].key);
      if (*why)
        ni_bad(p, "%s", why);
    }
  } else if (strcmp(verb, "var") == 0) {
    for (int i = 0; i < p->n_args; i++) {
      p->args[i].used = true;
      ni_arg_set_var(p, p->args[i].key, p->args[i].value, false);
    }
  } else if (strcmp(verb, "comm") == 0) {
    do_comm(p);
  } else if (strcmp(verb, "coll") == 0) {
    ni_scn_coll(p);
  } else if (strcmp(verb, "p2p") == 0) {
    ni_scn_p2p(p);
  } else if (strcmp(verb, "sendrecv") == 0) {
    int n = p->scn->comms[ni_arg_comm(p)].n_ranks, shift = (int)ni_arg_num(p, "shift", 1, 0, n - 1);
    ni_scn_shifts(p, shift, shift + 1);
  } else if (strcmp(verb, "alltoall") == 0) {
    int n = p->scn->comms[ni_arg_comm(p)].n_ranks;
    ni_scn_shifts(p, ni_arg_num(p, "self", 1, 0, 1) != 0 ? 0 : 1, n);
  } else if (strcmp(verb, "gather") == 0 || strcmp(verb, "scatter") == 0) {
    ni_scn_rooted(p, verb[0] == 'g');
  } else if (strcmp(verb, "put") == 0) {
    int comm = ni_arg_comm(p);
    st = ni_scn_add_step(p, NI_DO_PUT);
    st->comm = comm;
  } else if (strcmp(verb, "self") == 0) {
    ni_scn_shifts(p, 0, 1);
  } else if (strcmp(verb, "group") == 0) {
    do_block(p, NI_DO_WORK);
  } else if (strcmp(verb, "graph") == 0) {
    do_block(p, NI_DO_GRAPH);
  } else if (strcmp(verb, "end") == 0) {
    if (p->block) {
      close_block(p);
    } else {
      if (!p->n_loops)
        ni_bad(p, "`end` without group, graph or loop");
      st = ni_scn_add_step(p, NI_DO_END_LOOP);
      st->match = p->loops[--p->n_loops];
      p->scn->steps[st->match].match = p->scn->n_steps - 1;
    }
  } else if (strcmp(verb, "loop") == 0) {
    if (p->n_loops == 16)
      ni_bad(p, "loops nested deeper than 16");
    st = ni_scn_add_step(p, NI_DO_LOOP);
    st->times = (uint64_t)ni_arg_num(p, "times", 1, 0, 1e12);
    p->loops[p->n_loops++] = p->scn->n_steps - 1;
  } else if (strcmp(verb, "replay") == 0) {
    const char *name = ni_arg_text(p, "graph", "g");
    int g = -1, comm = ni_arg_comm(p);
    for (int i = 0; i < p->scn->n_graphs; i++)
      if (strcmp(p->graph_names[i], name) == 0)
        g = i;
    if (g < 0)
      ni_bad(p, "graph=%s: no such graph before this line", name);
    st = ni_scn_add_step(p, NI_DO_REPLAY);
    st->comm = comm;
    st->graph = g;
    st->times = (uint64_t)ni_arg_num(p, "times", 1, 0, 1e9);
    st->every_ms = (uint32_t)ni_arg_num(p, "every_ms", 0, 0, 60000);
    st->concurrent = ni_arg_num(p, "concurrent", 0, 0, 1) != 0;
    if (st->concurrent)
      p->scn->comms[comm].two_threads = true;
    if (st->concurrent && p->scn->comms[comm].live > 1)
      ni_bad(p,
             "concurrent=1 needs a communicator with live=1: otherwise ranks could order their work "
             "differently");
  } else if (strcmp(verb, "ce") == 0) {
    ni_scn_ce(p);
  } else if (strcmp(verb, "init") == 0) {
    do_comms(p, NI_DO_INIT);
  } else if (strcmp(verb, "destroy") == 0) {
    do_comms(p, NI_DO_DESTROY);
  } else if (strcmp(verb, "abort") == 0) {
    do_comms(p, NI_DO_ABORT);
  } else if (strcmp(verb, "sync") == 0) {
    do_comms(p, NI_DO_SYNC);
  } else if (strcmp(verb, "sleep") == 0) {
    double ms = ni_arg_num(p, "ms", 0, 0, 1e7), us = ni_arg_num(p, "us", 0, 0, 1e9);
    int who = (int)ni_arg_num(p, "rank", -1, 0, 65535);
    st = ni_scn_add_step(p, NI_DO_SLEEP);
    st->value = (uint64_t)(ms * 1e6 + us * 1e3);
    st->who = who;
  } else if (strcmp(verb, "mask") == 0) {
    const char *value = ni_arg_text(p, "value", "0");
    int who = (int)ni_arg_num(p, "rank", 0, 0, 65535);
    st = ni_scn_add_step(p, NI_DO_MASK);
    st->value = strtoull(value, NULL, 0);
    st->who = who;
  } else if (strcmp(verb, "ras") == 0) {
    const char *value = ni_arg_text(p, "value", "none");
    int mask = ni_ras_mask(value), who = (int)ni_arg_num(p, "rank", 0, 0, 65535);
    if (mask < 0)
      ni_bad(p, "value=%s: accepted are none, all, names of events with commas, or a number", value);
    st = ni_scn_add_step(p, NI_DO_RAS);
    st->value = (uint64_t)mask;
    st->who = who;
  } else if (strcmp(verb, "barrier") == 0) {
    ni_scn_add_step(p, NI_DO_BARRIER);
  } else if (strcmp(verb, "exit") == 0) {
    const char *how = ni_arg_text(p, "how", "exit");
    int k = ni_pick(how, ni_end_names, NI_END_COUNT), who = (int)ni_arg_num(p, "rank", -1, 0, 65535);
    if (k < 1)
      ni_bad(p, "how=%s: accepted are exit quick_exit _exit sigkill", how);
    st = ni_scn_add_step(p, NI_DO_END);
    st->how = (enum ni_end)k;
    st->who = who;
  } else {
    ni_bad(p, "`%s`: no such directive; see docs/simulator.md", verb);
  }
}

static void parse_line(struct ni_parser_state *p, char *line) {
  char *hash = strchr(line, '#');
  if (hash)
    *hash = 0;
  char *save = NULL, *verb = strtok_r(line, " \t\r", &save);
  if (!verb)
    return;
  p->n_args = 0;
  p->name = NULL;
  for (char *w; (w = strtok_r(NULL, " \t\r", &save));) {
    char *eq = strchr(w, '=');
    if (!eq && p->n_args == 0 && !p->name) {
      p->name = w;
      continue;
    }
    if (!eq || p->n_args == NI_MAX_ARGS)
      ni_bad(p, "`%s`: key=value expected", w);
    *eq = 0;
    p->args[p->n_args++] = (struct ni_arg){w, eq + 1, false};
  }
  do_verb(p, verb);
  for (int i = 0; i < p->n_args; i++)
    if (!p->args[i].used)
      ni_bad(p, "`%s` is not a key of `%s`", p->args[i].key, verb);
}

struct ni_scn *ni_scn_parse(const char *text, const char *path, const char *const *sets, int n) {
  struct ni_parser_state p = {.scn = ni_xalloc(sizeof *p.scn)};
  struct ni_scn *s = p.scn;
  snprintf(s->path, sizeof s->path, "%s", path);
  ni_settings_default(&s->set);
  for (int i = 0; i < n; i++) {
    char name[NI_SET_NAME_BYTES], why[256];
    const char *value = ni_set_split(sets[i], name);
    ni_arg_set_var(&p, name, value, true);
    if (ni_settings_set(&s->set, name, value, why, sizeof why)) {
      if (*why)
        ni_die(NI_SIM_USAGE, "--set %s", why);
      p.vars[p.n_vars - 1].used = true;
    }
  }
  char *copy = strdup(text);
  for (char *save = NULL, *line = copy; line; line = save) {
    save = strchr(line, '\n');
    if (save)
      *save++ = 0;
    p.line++;
    parse_line(&p, line);
  }
  free(copy);
  if (p.block || p.n_loops)
    ni_bad(&p, "the file ends inside a group, graph or loop: `end` is missing");
  for (int i = 0; i < p.n_vars; i++)
    if (!p.vars[i].used)
      ni_die(NI_SIM_USAGE, "--set %s: neither a setting nor a `var` of %s", p.vars[i].name, path);
  if (!s->n_comms)
    ni_die(NI_SIM_USAGE, "%s: no `comm` line", path);
  for (int i = 0; i < s->n_steps; i++) {
    struct ni_step *st = &s->steps[i];
    for (int k = 0; k < st->n_plans; k++) {
      ni_model_times(s, &s->comms[st->comm], &st->plans[k]);
      st->n_tasks += st->plans[k].n_tasks;
      for (int t = 0; t < st->plans[k].n_tasks; t++)
        if (st->plans[k].tasks[t].ch0 + st->plans[k].tasks[t].n_ch > s->max_ch)
          s->max_ch = st->plans[k].tasks[t].ch0 + st->plans[k].tasks[t].n_ch;
    }
    if (st->n_tasks > s->max_tasks)
      s->max_tasks = st->n_tasks;
  }
  return s;
}

struct ni_scn *ni_scn_read(const char *path, const char *const *sets, int n) {
  FILE *f = fopen(path, "re");
  if (!f)
    ni_die(NI_SIM_USAGE, "%s: %s", path, strerror(errno));
  char *text = NULL;
  size_t cap = 0;
  if (getdelim(&text, &cap, 0, f) < 0)
    ni_die(NI_SIM_USAGE, "%s: empty or unreadable", path);
  fclose(f);
  struct ni_scn *s = ni_scn_parse(text, path, sets, n);
  free(text);
  return s;
}

void ni_scn_free(struct ni_scn *s) {
  for (int i = 0; i < s->n_steps; i++) {
    for (int k = 0; k < s->steps[i].n_plans; k++)
      free(s->steps[i].plans[k].tasks);
    free(s->steps[i].plans);
    free(s->steps[i].comms);
  }
  for (int i = 0; i < s->n_comms; i++) {
    free(s->comms[i].ranks);
    free((char *)s->comms[i].label);
  }
  free(s->steps);
  free(s->comms);
  free(s);
}
