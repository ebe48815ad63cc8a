/*
 * The text of a control file, line by line (docs/control.md). Pure; nothing is executed here, and nothing
 * else is read.
 *
 *   [@NUMBER] COMMAND    # a remark
 *   COMMAND: preset NAME | events LIST | verbose on|off | sample 1/N | flush | mark TEXT | tag NUMBER NAME
 *
 * NUMBER: Unix ns at which `nccl-inspector ctl` put the line there; who has carried a line out with this
 * number or a higher one does not do it again. A line that does not end with a line feed was perhaps written
 * only in part: refused.
 *
 * Text is hostile: any bytes, up to NI_CTL_FILE_BYTES of them; what is beyond NI_CTL_LINES lines is refused
 * in one.
 */
#ifndef NI_CONTROL_PARSE_H
#define NI_CONTROL_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NI_CTL_FILE_BYTES 8192u
#define NI_CTL_LINES 24u
#define NI_CTL_LINE_BYTES 256u /* without line feed; a longer one is refused */
#define NI_CTL_MARK_BYTES 65u  /* of a mark's name, terminator included */
#define NI_CTL_WHY_BYTES 200u

enum ni_ctl_verb {
  NI_CTL_EVENTS = 0,
  NI_CTL_VERBOSE,
  NI_CTL_SAMPLE,
  NI_CTL_FLUSH,
  NI_CTL_MARK,
  NI_CTL_TAG,
  NI_CTL_REFUSED
};

struct ni_ctl_command {
  enum ni_ctl_verb verb;
  uint32_t line;                /* from 1 */
  uint64_t at_ns;               /* 0: none */
  char text[NI_CTL_LINE_BYTES]; /* the command as it stands there, control characters as '?' */
  char mark[NI_CTL_MARK_BYTES];
  uint32_t kinds; /* EVENTS: set of enum ni_event */
  bool on;        /* VERBOSE */
  uint64_t sample;
  char why[NI_CTL_WHY_BYTES]; /* REFUSED: what was expected */
};

/* Is this "NUMBER NAME", a tag and its name? NUMBER from 1 to 2^63 - 1, NAME of 1 to 64 bytes without a
 * control character. Blanks in front and between are passed over. */
bool ni_ctl_is_tag(const char *text);

/* Calls take for each line that is not empty or a remark. c is valid during the call only. */
void ni_ctl_parse(const char *text, size_t n, void (*take)(void *arg, const struct ni_ctl_command *c),
                  void *arg);

#endif
