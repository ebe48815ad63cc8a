/*
 * Rows (rows.h) on a terminal, by ncurses: redrawn at each look, keys as htop has them (docs/top.md), 80x24
 * and whatever is more; or printed once as text. Main thread. The terminal is as it was after
 * ni_screen_close().
 */
#ifndef NI_SCREEN_H
#define NI_SCREEN_H

#include "rows.h"

struct ni_screen;

/* The tables as text on standard output. */
void ni_top_print(const struct ni_top *t);

/* NULL, or what is wrong, and then also ni_screen_close(). */
const char *ni_screen_open(struct ni_screen **out, bool colours, uint64_t every_ns);
/* nothing: the sentence where there are no ranks. */
void ni_screen_draw(struct ni_screen *s, const struct ni_top *t, const char *nothing);
/*
 * Handles all keys that wait, which may change the order and the filter of t. false: quit. *any: something
 * has to be drawn.
 */
bool ni_screen_keys(struct ni_screen *s, struct ni_top *t, bool *any);
/* The time between looks, which keys can change; 0: paused. */
uint64_t ni_screen_every(const struct ni_screen *s);
void ni_screen_close(struct ni_screen *s);

#endif
