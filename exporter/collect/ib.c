#include "source.h"

void ni_ib_find(struct ni_find *f) { (void)f; }
