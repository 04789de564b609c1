/// Ranks that share memory: threads of one JVM (`local`), processes of one host (`shm`).
package org.comm4j.backend.local;
