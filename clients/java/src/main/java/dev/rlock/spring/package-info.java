/**
 * For those who use Spring Integration:
 * {@code org.springframework.integration:spring-integration-core} must be on the class path.
 */
package dev.rlock.spring;
