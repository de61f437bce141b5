/**
 * ScaleTrain for Java: training of neural networks inside of the program. {@link org.scaletrain.Context} is where it begins.
 *
 * <p>Every method says by {@link org.scaletrain.OfC} which functions of the C ABI it is. Failures are
 * {@link org.scaletrain.ScaleTrainException}s; arrays are {@link org.scaletrain.Array}s over the program's memory.
 */
package org.scaletrain;
