/*
 * How much is recorded right now, and who decides: settings at first, then control files.
 * The dump role alone changes it; each change is a `control` line.
 */
#ifndef NI_DETAIL_H
#define NI_DETAIL_H

#include "plugin/settings/control_file.h"
#include "plugin/settings/control_parse.h"
#include "tags.h"

struct ni_detail {
  struct ni_ctl_file file[2]; /* of all ranks; of this process's own */
  char own_name[NI_CTL_NAME_BYTES];
  uint8_t turn; /* whose look is next */
  uint64_t last_look_ms;
  char text[NI_CTL_FILE_BYTES]; /* of the file that is looked at */
  struct ni_tag_lines tags;
};

struct ni_config;
struct ni_dump;

void ni_detail_init(struct ni_dump *d, const struct ni_config *c); /* with the first init */
/* with a session: where control files are */
void ni_detail_open(struct ni_dump *d, const char *dir);
/* Looks for what is to change, at most one stat a second; says what has changed. */
void ni_detail_tick(struct ni_dump *d);

#endif
