/*
 * A store's folder without a head: what is there, and a session's file written anew from it (frames.jsonl and
 * late.jsonl). One thread a call. Errors: -errno with a sentence in why.
 */
#ifndef NI_RECOVER_H
#define NI_RECOVER_H

#include "exporter/session/folder.h"

/*
 * All sessions below the store's folder, oldest first; *list is for free(). n, or -errno. What is no session
 * is passed over.
 */
int ni_states_read(int dir, struct ni_state **list);
/* For the command. data: the store's folder; *list, newest first, is for free(). n, or -errno. */
int ni_store_read(const char *data, struct ni_session **list, char *why, size_t cap);
int ni_store_export(const char *data, const char *id_or_name, FILE *to, char *why, size_t cap);

/* The file's text before the frames and behind them. */
void ni_file_head(struct ni_buffer *to, const struct ni_state *s);
void ni_file_tail(struct ni_buffer *to, const struct ni_state *s, const struct ni_columns of[NI_GROUPS],
                  const struct ni_sums *sums);
/*
 * All of it, with late samples in their frames, which s->session.late counts then. 0 or -errno. *quit becomes
 * true: -EINTR soon; NULL: never.
 */
int ni_file_write(int dir, struct ni_state *s, FILE *to, const _Atomic bool *quit);

#endif
