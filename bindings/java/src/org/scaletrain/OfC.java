package org.scaletrain;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Names the C functions that a method or constructor calls. Their documentation is in {@code scaletrain/*.h}. A test checks that no C function
 * is missing.
 */
@Documented
@Retention(RetentionPolicy.RUNTIME)
@Target({ElementType.METHOD, ElementType.CONSTRUCTOR})
public @interface OfC {
  /** Names of C functions, such as {@code st_trainer_step}. */
  String[] value();
}
