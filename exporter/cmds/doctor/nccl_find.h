#ifndef NI_DOCTOR_NCCL_FIND_H
#define NI_DOCTOR_NCCL_FIND_H

#include "findings.h"

/* NCCL libraries of this machine, in the order in which a job is likely to meet them; each with its release. */
void ni_doctor_nccl(struct ni_doctor *d);

#endif
