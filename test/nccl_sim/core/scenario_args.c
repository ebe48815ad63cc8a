/* Words, variables and lists of a scenario line; see scenario_parser.h. */
#include "scenario_parser.h"

#include <string.h>

#include "settings.h"

void ni_bad(const struct ni_parser_state *p, const char *fmt, ...) {
  char text[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  ni_die(NI_SIM_USAGE, "%s:%d: %s", p->scn->path, p->line, text);
}

const char *ni_arg_expand(struct ni_parser_state *p, const char *value) {
  if (value[0] != '$')
    return value;
  for (int i = 0; i < p->n_vars; i++)
    if (strcmp(p->vars[i].name, value + 1) == 0)
      return p->vars[i].value;
  ni_bad(p, "%s: no `var %s=...` before this line", value, value + 1);
}

const char *ni_arg_text(struct ni_parser_state *p, const char *key, const char *def) {
  for (int i = 0; i < p->n_args; i++)
    if (strcmp(p->args[i].key, key) == 0) {
      p->args[i].used = true;
      return ni_arg_expand(p, p->args[i].value);
    }
  return def;
}

double ni_arg_num(struct ni_parser_state *p, const char *key, double def, double min, double max) {
  const char *t = ni_arg_text(p, key, NULL);
  double v;
  if (!t)
    return def;
  if (!ni_number(t, &v) || v < min || v > max)
    ni_bad(p, "%s=%s: accepted is a number from %g to %g", key, t, min, max);
  return v;
}

void ni_arg_set_var(struct ni_parser_state *p, const char *name, const char *value, bool fixed) {
  for (int i = 0; i < p->n_vars; i++)
    if (strcmp(p->vars[i].name, name) == 0) {
      if (!p->vars[i].fixed)
        snprintf(p->vars[i].value, sizeof p->vars[i].value, "%s", value);
      p->vars[i].used = true;
      return;
    }
  if (p->n_vars == NI_MAX_VARS)
    ni_bad(p, "more than %d variables", NI_MAX_VARS);
  snprintf(p->vars[p->n_vars].name, sizeof p->vars[0].name, "%s", name);
  snprintf(p->vars[p->n_vars].value, sizeof p->vars[0].value, "%s", value);
  p->vars[p->n_vars].fixed = fixed;
  p->vars[p->n_vars++].used = !fixed;
}

int ni_arg_find_comm(struct ni_parser_state *p, const char *name) {
  for (int i = 0; i < p->scn->n_comms; i++)
    if (strcmp(p->scn->comms[i].name, name) == 0)
      return i;
  ni_bad(p, "communicator `%s` is not declared: `comm %s ranks=...` must come first", name, name);
}

int ni_arg_comm(struct ni_parser_state *p) {
  if (p->name)
    return ni_arg_find_comm(p, p->name);
  if (p->block)
    return p->block->comm;
  if (p->scn->n_comms == 1)
    return 0;
  ni_bad(p, "name the communicator after the verb");
}

/* "0-3,6,8-14/2" */
int *ni_arg_ranks(struct ni_parser_state *p, const char *text, int *n) {
  int *out = NULL;
  *n = 0;
  for (const char *s = text; *s;) {
    char *end;
    long a = strtol(s, &end, 10), b = a, step = 1;
    if (end == s)
      ni_bad(p, "ranks=%s: accepted are lists like 0-3,6,8-14/2", text);
    if (*end == '-')
      b = strtol(end + 1, &end, 10);
    if (*end == '/')
      step = strtol(end + 1, &end, 10);
    if (a < 0 || b < a || step < 1 || b >= p->scn->set.ranks)
      ni_bad(p, "ranks=%s: the job has ranks 0 to %d", text, p->scn->set.ranks - 1);
    for (; a <= b; a += step)
      *NI_ADD(out, *n) = (int)a;
    s = *end == ',' ? end + 1 : end;
    if (*end && *end != ',')
      ni_bad(p, "ranks=%s: accepted are lists like 0-3,6,8-14/2", text);
  }
  return out;
}
