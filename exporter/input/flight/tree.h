/*
 * A Flight Recorder dump of PyTorch's ProcessGroupNCCL as a tree: its pickle (`nccl_trace_rank_N`) or its
 * JSON.
 *
 * Of a pickle (protocols 2 to 5) dicts, lists, tuples, texts, numbers, bools, None and the memo are read.
 * Nothing is executed; a file with any other opcode is refused. What the memo shares stays shared: a node may
 * be in many places, also in itself, so who walks bounds how far.
 *
 * Refused, too: more than NI_TREE_BYTES, NI_TREE_VALUES values (what the memo gives again is one more),
 * NI_TREE_MARKS open marks of a pickle, nesting 32 of JSON. A tree takes 700 MB at most, and the file.
 *
 * Threads: any, each tree by itself. Ownership: ni_tree_free(); nodes and texts live as long.
 */
#ifndef NI_TREE_H
#define NI_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NI_TREE_BYTES (256u << 20)
#define NI_TREE_VALUES (8u << 20)
#define NI_TREE_MARKS 64

struct ni_tree;
struct ni_node;

/* Does the file begin as a dump does, whatever its name? */
bool ni_tree_is_dump(const char *path);
/* NULL: it cannot be read, `why` is a sentence. */
struct ni_tree *ni_tree_read(const char *path, char why[256]);
void ni_tree_free(struct ni_tree *t);
const struct ni_node *ni_tree_root(const struct ni_tree *t);

/* Item i of a list, of a dict its keys and values in turn; the value of a key, among the first 64. NULL:
 * there is none, or x is NULL or of another kind. */
const struct ni_node *ni_node_at(const struct ni_node *x, size_t i);
const struct ni_node *ni_node_get(const struct ni_node *x, const char *key);
size_t ni_node_length(const struct ni_node *x);
/* A number or bool, also one that is written as text; else `otherwise`. */
int64_t ni_node_number(const struct ni_node *x, int64_t otherwise);
/* A text, cut to what fits; else "". Returns out. And all of it, *n bytes without a NUL. */
const char *ni_node_text(const struct ni_node *x, char *out, size_t size);
const char *ni_node_bytes(const struct ni_node *x, size_t *n);

#endif
