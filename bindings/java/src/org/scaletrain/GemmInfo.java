package org.scaletrain;

/**
 * The schedule that a plan chose, and the speed of its last run.
 *
 * @param adjusted whether the requested schedule was rounded to a supported one
 * @param tileM rows that one thread computes at a time
 * @param tileN columns that one thread computes at a time
 * @param tileK length at which the sum over K is cut
 * @param blockM rows that are packed at a time, for all threads
 * @param blockN columns that are packed at a time, for all threads
 * @param microM rows in registers
 * @param microN columns in registers
 * @param order which loop is outermost
 * @param packing whether B is packed
 * @param threads threads of a run
 * @param instructionSet instruction set of the kernel
 * @param scratchBytes scratch memory of a run
 * @param packedBytes size of a packed B
 * @param flopsPerSecond speed of the last run
 * @param predictedFlopsPerSecond speed that the machine model predicts
 * @param source where the tiles come from
 * @param library {@code own}, or a third-party library and its version
 */
public record GemmInfo(boolean adjusted, long tileM, long tileN, long tileK, long blockM, long blockN, long microM, long microN,
    GemmOrder order, GemmPacking packing, int threads, String instructionSet, long scratchBytes, long packedBytes, double flopsPerSecond,
    double predictedFlopsPerSecond, GemmSource source, String library) {}
