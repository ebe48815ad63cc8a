#include "unended.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/safe_text.h"

/* dir becomes the folder that holds it and the file at path. */
static int widen(char **dir, const char *path) {
  const char *slash = strrchr(path, '/');
  size_t n = slash ? (size_t)(slash - path) : 1, same = 0;
  if (!slash) path = ".";
  if (!*dir) return (*dir = strndup(n ? path : "/", n ? n : 1)) ? 0 : -ENOMEM;
  while (same < n && (*dir)[same] == path[same]) same++;
  while (same && ((*dir)[same] && (*dir)[same] != '/')) same--; /* not half a name */
  while (same && same < n && path[same] != '/') same--;
  if (!same && **dir != '/') **dir = '.';
  (*dir)[same ? same : 1] = 0;
  return 0;
}

int ni_unended_add(struct ni_unended *u, bool has_line, bool has_end, const char *host, const char *path) {
  if (!has_line || has_end) return 0;
  size_t i = 0;
  while (i < u->n_hosts && strcmp(u->host[i], host) != 0) i++;
  if (i == sizeof u->host / sizeof *u->host) u->more_hosts = true;
  else if (i == u->n_hosts) u->host[u->n_hosts++] = host;
  u->n++;
  return widen(&u->dir, path);
}

void ni_unended_text(const struct ni_unended *u, char *out, size_t size) {
  FILE *f = fmemopen(out, size, "w");
  if (!f) return;
  ni_say(f, "`nccl-inspector recover %s` on ", u->dir);
  for (size_t i = 0; i < u->n_hosts; i++)
    ni_say(f, "%s%.80s", i == 0 ? "" : i + 1 == u->n_hosts && !u->more_hosts ? " and " : ", ", u->host[i]);
  ni_say(f, "%s adds what their black boxes hold", u->more_hosts ? " and others" : "");
  fclose(f);
  out[size - 1] = 0;
}

void ni_unended_free(struct ni_unended *u) { free(u->dir); }
