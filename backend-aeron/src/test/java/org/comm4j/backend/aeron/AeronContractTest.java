package org.comm4j.backend.aeron;

/// The contract where each rank has a driver of its own.
class AeronContractTest extends AeronContract {}
