/// The `cuda` backend.
package org.comm4j.backend.cuda;
