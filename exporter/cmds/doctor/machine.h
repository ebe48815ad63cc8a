#ifndef NI_DOCTOR_MACHINE_H
#define NI_DOCTOR_MACHINE_H

#include "findings.h"

/* Shared memory, clocks, limits, GPUs. */
void ni_doctor_machine(struct ni_doctor *d);
/* Names that are nearly settings; settings that contradict each other. */
void ni_doctor_settings(struct ni_doctor *d);

#endif
