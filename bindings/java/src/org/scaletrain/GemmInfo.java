package org.scaletrain;

/**
 * What a plan chose, and how fast its last run was.
 *
 * @param adjusted a wish was rounded to what there is
 * @param tileM rows of A in the caches
 * @param tileN columns of B in the caches
 * @param tileK terms of a sum in the caches
 * @param blockM rows that a thread does at once
 * @param blockN columns that a thread does at once
 * @param microM rows in registers
 * @param microN columns in registers
 * @param order which loop is outermost
 * @param packing whether B is laid out anew
 * @param threads of a run
 * @param instructionSet of the kernel
 * @param scratchBytes that a run uses besides
 * @param packedBytes of a B that is packed
 * @param flopsPerSecond of the last run
 * @param predictedFlopsPerSecond of the model of the machine
 * @param source where the tiles come from
 * @param library {@code own}, or a library of others and its version
 */
public record GemmInfo(boolean adjusted, long tileM, long tileN, long tileK, long blockM, long blockN, long microM, long microN,
    GemmOrder order, GemmPacking packing, int threads, String instructionSet, long scratchBytes, long packedBytes, double flopsPerSecond,
    double predictedFlopsPerSecond, GemmSource source, String library) {}
