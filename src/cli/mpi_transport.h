/* MPI as the transport of a crew (crew/transport.h). */
#ifndef CLI_MPI_TRANSPORT_H
#define CLI_MPI_TRANSPORT_H

#include "crew/transport.h"

/* Starts MPI. False, after a message, when it cannot be. */
bool mpi_begin(struct crew_transport *transport);

/* Ends this process's part in MPI. clean: all processes do the same. Else some are dead or hang:
 * the others are ended by force, and this call does not return. hosts: process 0 knows that they
 * are on several. status: the exit code. */
void mpi_end(bool clean, bool hosts, int status);

#endif
