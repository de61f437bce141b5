/**
 * ScaleTrain for Java: trains neural networks inside the program. Start with {@link org.scaletrain.Context}.
 *
 * <p>{@link org.scaletrain.OfC} names the C functions that a method calls. Failures are {@link org.scaletrain.ScaleTrainException}s. Arrays
 * are {@link org.scaletrain.Array}s over the program's memory.
 */
package org.scaletrain;
