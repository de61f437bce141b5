package org.scaletrain;

/**
 * A parameter of a model.
 *
 * @param name name with its scopes, for example {@code block.0.mlp.weight}
 * @param type dtype and dims
 * @param trainable whether steps change it
 */
public record ParameterInfo(String name, ArrayType type, boolean trainable) {}
