#include "source.h"

void ni_cxi_find(struct ni_find *f) { (void)f; }
