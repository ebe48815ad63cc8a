/*
 * Kinds of event as text: what NCCL_INSPECTOR_EVENTS and control files say. Pure; any thread.
 */
#ifndef NI_EVENT_NAMES_H
#define NI_EVENT_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads a list of kinds: names of format/events.h, presets, `all` and `none`, separated by commas or blanks;
 * `-name` takes a kind or a preset's kinds away. A list that begins with a `-` changes the standard preset.
 * True and *kinds; false and a sentence fragment in why ("...: name is not known; accepted are ..."), *kinds
 * unchanged.
 */
bool ni_kinds_parse(const char *text, uint32_t *kinds, char *why, size_t cap);

/* The shortest text that parses to kinds: a preset's name, or names with commas; "none" for 0. Terminated,
 * cut at cap (NI_KINDS_TEXT_BYTES is enough). */
#define NI_KINDS_TEXT_BYTES 160
void ni_kinds_text(uint32_t kinds, char *buf, size_t cap);

#endif
