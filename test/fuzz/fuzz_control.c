/*
 * libFuzzer: bytes as the text of a control file. Parsing must not crash; each line is told once, in order,
 * as a command within its ranges or refused with a reason; texts are terminated and without control
 * characters; a text that was accepted is accepted again when it stands alone. The settings' texts that
 * control files share are parsed from the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "plugin/settings/control_parse.h"
#include "plugin/settings/detail_text.h"
#include "format/events.h"

static void need(int truth) {
  if (!truth)
    abort();
}

struct seen {
  uint32_t n, last_line;
  int again; /* the text of a command that was accepted, by itself */
  enum ni_ctl_verb verb;
};

static void clean(const char *s, size_t cap) {
  need(memchr(s, 0, cap) != NULL);
  for (; *s; s++)
    need((unsigned char)*s >= 0x20 && *s != 0x7f);
}

static void take(void *arg, const struct ni_ctl_command *c) {
  struct seen *s = arg;
  need(c->line > s->last_line && ++s->n <= NI_CTL_LINES + 1);
  s->last_line = c->line;
  clean(c->text, sizeof c->text);
  need(c->at_ns <= INT64_MAX);
  need((c->verb == NI_CTL_REFUSED) == (c->why[0] != 0));
  clean(c->why, sizeof c->why);
  switch (c->verb) {
    case NI_CTL_EVENTS:
      need((c->kinds & ~NI_KINDS_ALL) == 0);
      break;
    case NI_CTL_SAMPLE:
      need(c->sample >= 1 && c->sample <= NI_SAMPLE_MAX);
      break;
    case NI_CTL_MARK:
      clean(c->mark, sizeof c->mark);
      need(c->mark[0]);
      break;
    default:
      need(c->verb <= NI_CTL_REFUSED);
  }
  if (s->again) {
    need(c->verb == s->verb);
  } else if (c->verb != NI_CTL_REFUSED) {
    char line[NI_CTL_LINE_BYTES + 1];
    struct seen alone = {.again = 1, .verb = c->verb};
    size_t n = strlen(c->text);
    memcpy(line, c->text, n);
    line[n] = '\n';
    ni_ctl_parse(line, n + 1, take, &alone);
    need(alone.n == 1);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *copy = malloc(size + 1); /* exactly so long: a byte read behind the end is found */
  need(copy != NULL);
  memcpy(copy, data, size);
  struct seen s = {0};
  ni_ctl_parse(copy, size, take, &s);
  copy[size] = 0;
  uint64_t n = 0;
  if (ni_sample_parse(copy, &n))
    need(n >= 1 && n <= NI_SAMPLE_MAX);
  (void)ni_ctl_is_tag(copy);
  free(copy);
  return 0;
}
