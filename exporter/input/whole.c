#include "whole.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <zlib.h>

#include "exporter/base/array.h"
#include "exporter/base/process/as_user.h"
#include "exporter/input/parse/parse.h"

char *ni_read_whole(const char *path, size_t most, size_t *len, char *why, size_t cap) {
  char *text = NULL;
  const char *bad = NULL;
  size_t room = 0;
  int got = 1, e = 0, fd = ni_named_open(path);
  gzFile f = fd >= 0 ? gzdopen(fd, "rb") : NULL;
  if (!f)
    bad = strerror(fd < 0 ? -fd : errno);
  if (!f && fd >= 0)
    close(fd);
  for (*len = 0; !bad && got > 0 && *len < most; *len += got > 0 ? (size_t)got : 0) {
    if (!ni_array_room(text, *len + (1 << 16) + NI_PARSE_PADDING, room))
      bad = strerror(ENOMEM);
    else
      got = gzread(f, text + *len,
                   (unsigned)(room - NI_PARSE_PADDING - *len < most - *len ? room - NI_PARSE_PADDING - *len
                                                                           : most - *len));
  }
  const char *said = f ? gzerror(f, &e) : "";
  if (!bad && e)
    bad = e == Z_ERRNO ? strerror(errno) : e == Z_BUF_ERROR ? "the gzip file is cut" : said;
  if (bad)
    snprintf(why, cap, "%s", bad);
  else
    memset(text + *len, 0, NI_PARSE_PADDING);
  if (f)
    gzclose(f);
  if (bad)
    free(text);
  return bad ? NULL : text;
}
