"""The event types: one table, from which the metadata of each chunk, docs/flight-recorder-events.md and the tests come.

A line is a type's name and its fields in the order in which they are written, without `startTime`, which each type
begins with. `duration`, `eventThread` and `stackTrace` are what their names say; the others are `name:kind`, with the
kinds of `types.KINDS` and `types.VALUES`. A line that is indented further goes on with the type above it.

Types of the JDK's name have the fields of JDK 21, those that came later the fields of JDK 25. Those that no part of
vmscope writes are here too: a view of `jfr view` needs all the types that it asks for.
"""

from __future__ import annotations

EVENTS: dict[str, str] = {
    "Recorder": """
        jdk.ActiveRecording id:long name:text destination:text disk:flag maxAge:ms flushInterval:ms
            maxSize:bytes recordingStart:epoch recordingDuration:ms
        jdk.ActiveSetting id:long name:text value:text
        jdk.DataLoss amount:bytes total:bytes
    """,
    "GC": """
        jdk.AllocationRequiringGC eventThread stackTrace gcId:uint size:bytes
        jdk.GCCPUTime gcId:uint userTime:ns systemTime:ns realTime:ns
        jdk.GCConfiguration youngCollector:text oldCollector:text parallelGCThreads:uint
            concurrentGCThreads:uint usesDynamicGCThreads:flag isExplicitGCConcurrent:flag
            isExplicitGCDisabled:flag pauseTarget:ms gcTimeRatio:uint
        jdk.GCHeapConfiguration minSize:bytes maxSize:bytes initialSize:bytes usesCompressedOops:flag
            compressedOopsMode:text objectAlignment:bytes heapAddressBits:uint
        jdk.GCHeapSummary gcId:uint when:text heapSpace:VirtualSpace heapUsed:bytes
        jdk.GCPhaseConcurrent duration eventThread gcId:uint name:text
        jdk.GCPhaseConcurrentLevel1 duration eventThread gcId:uint name:text
        jdk.GCPhaseParallel duration eventThread gcId:uint gcWorkerId:uint name:text
        jdk.GCPhasePause duration eventThread gcId:uint name:text
        jdk.GCPhasePauseLevel1 duration eventThread gcId:uint name:text
        jdk.GCPhasePauseLevel2 duration eventThread gcId:uint name:text
        jdk.GCPhasePauseLevel3 duration eventThread gcId:uint name:text
        jdk.GCPhasePauseLevel4 duration eventThread gcId:uint name:text
        jdk.GCReferenceStatistics gcId:uint type:text count:ulong
        jdk.GarbageCollection duration eventThread gcId:uint name:text cause:text sumOfPauses:ticks
            longestPause:ticks
        jdk.ObjectCount gcId:uint objectClass:Class count:long totalSize:bytes
        jdk.ObjectCountAfterGC gcId:uint objectClass:Class count:long totalSize:bytes
        jdk.OldGarbageCollection duration gcId:uint
        jdk.SystemGC duration eventThread stackTrace invokedConcurrent:flag
        jdk.YoungGarbageCollection duration gcId:uint tenuringThreshold:uint
    """,
    "Flags": """
        jdk.BooleanFlag name:text value:flag origin:text
        jdk.BooleanFlagChanged name:text oldValue:flag newValue:flag origin:text
        jdk.DoubleFlag name:text value:double origin:text
        jdk.DoubleFlagChanged name:text oldValue:double newValue:double origin:text
        jdk.IntFlag name:text value:int origin:text
        jdk.IntFlagChanged name:text oldValue:int newValue:int origin:text
        jdk.LongFlag name:text value:long origin:text
        jdk.LongFlagChanged name:text oldValue:long newValue:long origin:text
        jdk.StringFlag name:text value:text origin:text
        jdk.StringFlagChanged name:text oldValue:text newValue:text origin:text
        jdk.UnsignedIntFlag name:text value:uint origin:text
        jdk.UnsignedIntFlagChanged name:text oldValue:uint newValue:uint origin:text
        jdk.UnsignedLongFlag name:text value:ulong origin:text
        jdk.UnsignedLongFlagChanged name:text oldValue:ulong newValue:ulong origin:text
    """,
    "System": """
        jdk.CPUInformation cpu:text description:text sockets:uint cores:uint hwThreads:uint
        jdk.CPULoad jvmUser:fraction jvmSystem:fraction machineTotal:fraction
        jdk.CPUTimeStampCounter fastTimeEnabled:flag fastTimeAutoEnabled:flag osFrequency:hertz
            fastTimeFrequency:hertz
        jdk.ContainerCPUThrottling cpuElapsedSlices:long cpuThrottledSlices:long cpuThrottledTime:ns
        jdk.ContainerCPUUsage cpuTime:ns cpuUserTime:ns cpuSystemTime:ns
        jdk.ContainerConfiguration containerType:text cpuSlicePeriod:us cpuQuota:us cpuShares:long
            effectiveCpuCount:long memorySoftLimit:bytes memoryLimit:bytes swapMemoryLimit:bytes
            hostTotalMemory:bytes hostTotalSwapMemory:bytes
        jdk.ContainerIOUsage serviceRequests:long dataTransferred:bytes
        jdk.InitialEnvironmentVariable key:text value:text
        jdk.NetworkUtilization networkInterface:text readRate:bitrate writeRate:bitrate
        jdk.OSInformation osVersion:text
        jdk.ProcessStart eventThread stackTrace pid:long directory:text command:text
        jdk.SystemProcess pid:text commandLine:text
        jdk.ThreadCPULoad eventThread user:fraction system:fraction
        jdk.ThreadContextSwitchRate switchRate:rate
        jdk.VirtualizationInformation name:text
    """,
    "Profiling": """
        jdk.ExecutionSample sampledThread:Thread stackTrace state:ThreadState
        jdk.NativeMethodSample sampledThread:Thread stackTrace state:ThreadState
        vmscope.WaitSample duration sampledThread:Thread stackTrace state:ThreadState samples:int
        vmscope.GILWait duration eventThread stackTrace
        vmscope.SamplerStatistics taken:ulong repeated:ulong dropped:ulong late:ulong
        jdk.CPUTimeSample stackTrace eventThread failed:flag samplingPeriod:ticks biased:flag
        jdk.CPUTimeSamplesLost lostSamples:int eventThread
        jdk.OldObjectSample duration eventThread stackTrace allocationTime:moment objectSize:bytes
            objectAge:ticks lastKnownHeapUsage:bytes object:OldObject arrayElements:int root:OldObjectGcRoot
    """,
    "Imports": """
        jdk.ClassLoad duration eventThread stackTrace loadedClass:Class definingClassLoader:ClassLoader
            initiatingClassLoader:ClassLoader
        jdk.ClassUnload eventThread unloadedClass:Class definingClassLoader:ClassLoader
        jdk.RedefineClasses duration eventThread stackTrace classCount:int redefinitionId:ulong
        jdk.RetransformClasses duration eventThread stackTrace classCount:int redefinitionId:ulong
    """,
    "Program": """
        vmscope.AsyncioTask duration eventThread stackTrace task:text coroutine:text lag:ns
        vmscope.Counters name:text value:long
        jdk.ClassLoaderStatistics classLoader:ClassLoader parentClassLoader:ClassLoader
            classLoaderData:address classCount:long chunkSize:bytes blockSize:bytes hiddenClassCount:long
            hiddenChunkSize:bytes hiddenBlockSize:bytes
        jdk.ClassLoadingStatistics loadedClassCount:long unloadedClassCount:long
        jdk.DeprecatedInvocation stackTrace method:Method invocationTime:moment forRemoval:flag
        jdk.ExceptionStatistics throwables:long
        jdk.FileForce duration eventThread stackTrace path:text metaData:flag
        jdk.FileRead duration eventThread stackTrace path:text bytesRead:bytes endOfFile:flag
        jdk.FileWrite duration eventThread stackTrace path:text bytesWritten:bytes
        jdk.FinalizerStatistics finalizableClass:Class codeSource:text objects:ulong totalFinalizersRun:ulong
        jdk.JavaErrorThrow eventThread stackTrace message:text thrownClass:Class
        jdk.JavaExceptionThrow eventThread stackTrace message:text thrownClass:Class
        jdk.JavaMonitorEnter duration eventThread stackTrace monitorClass:Class previousOwner:Thread
            address:address
        jdk.JavaMonitorInflate duration eventThread stackTrace monitorClass:Class address:address cause:text
        jdk.JavaMonitorWait duration eventThread stackTrace monitorClass:Class notifier:Thread timeout:ms
            timedOut:flag address:address
        jdk.JavaThreadStatistics activeCount:long daemonCount:long accumulatedCount:long peakCount:long
        jdk.ObjectAllocationInNewTLAB eventThread stackTrace objectClass:Class allocationSize:bytes
            tlabSize:bytes
        jdk.ObjectAllocationOutsideTLAB eventThread stackTrace objectClass:Class allocationSize:bytes
        jdk.ObjectAllocationSample eventThread stackTrace objectClass:Class weight:bytes
        jdk.SocketRead duration eventThread stackTrace host:text address:text port:int timeout:ms
            bytesRead:bytes endOfStream:flag
        jdk.SocketWrite duration eventThread stackTrace host:text address:text port:int bytesWritten:bytes
        jdk.ThreadAllocationStatistics allocated:bytes thread:Thread
        jdk.ThreadEnd eventThread thread:Thread
        jdk.ThreadPark duration eventThread stackTrace parkedClass:Class timeout:ns until:epoch
            address:address
        jdk.ThreadSleep duration eventThread stackTrace time:ns
        jdk.ThreadStart eventThread stackTrace thread:Thread parentThread:Thread
        jdk.VirtualThreadPinned duration eventThread stackTrace blockingOperation:text pinnedReason:text
            carrierThread:Thread
    """,
    "Compiler": """
        jdk.Compilation duration eventThread compileId:int compiler:text method:Method compileLevel:ushort
            succeded:flag isOsr:flag codeSize:bytes inlinedBytes:bytes
        jdk.CompilerConfiguration threadCount:int tieredCompilation:flag dynamicCompilerThreadCount:flag
        jdk.CompilerPhase duration eventThread phase:text compileId:int phaseLevel:ushort
        jdk.CompilerStatistics compileCount:int bailoutCount:int invalidatedCount:int osrCompileCount:int
            standardCompileCount:int osrBytesCompiled:bytes standardBytesCompiled:bytes nmethodsSize:bytes
            nmethodCodeSize:bytes peakTimeSpent:ms totalTimeSpent:ms
        jdk.Deoptimization eventThread stackTrace compileId:int compiler:text method:Method lineNumber:int
            bci:int instruction:text reason:text action:text
    """,
    "Memory": """
        jdk.ContainerMemoryUsage memoryFailCount:long memoryUsage:bytes swapMemoryUsage:bytes
        jdk.NativeMemoryUsage type:text reserved:bytes committed:bytes
        jdk.PhysicalMemory totalSize:bytes usedSize:bytes
        jdk.ResidentSetSize size:bytes peak:bytes
    """,
    "VM": """
        jdk.ExecuteVMOperation duration eventThread operation:text safepoint:flag blocking:flag
            caller:Thread safepointId:ulong
        jdk.InitialSystemProperty key:text value:text
        jdk.JVMInformation jvmName:text jvmVersion:text jvmArguments:text jvmFlags:text javaArguments:text
            jvmStartTime:epoch pid:long
        jdk.MethodTiming method:Method invocations:long minimum:ticks average:ticks maximum:ticks
        jdk.MethodTrace duration eventThread stackTrace method:Method
        jdk.ModuleRequire source:Module requiredModule:Module
        jdk.NativeLibrary name:text baseAddress:address topAddress:address
        jdk.NativeLibraryLoad duration eventThread stackTrace name:text success:flag errorMessage:text
            fpuCorrectionAttempt:flag fpuCorrectionSuccess:flag
        jdk.NativeLibraryUnload duration eventThread stackTrace name:text success:flag errorMessage:text
        jdk.Shutdown eventThread stackTrace reason:text
        jdk.ThreadDump result:text
    """,
    "Diagnostics": """
        jdk.HeapDump duration eventThread stackTrace destination:text size:long gcBeforeDump:flag
            onOutOfMemoryError:flag overwrite:flag compression:int
        jdk.JavaAgent name:text options:text dynamic:flag initializationTime:moment
            initializationDuration:ticks
        jdk.NativeAgent name:text options:text dynamic:flag initializationTime:moment
            initializationDuration:ticks path:text
    """,
    "Safepoint": """
        jdk.SafepointBegin duration eventThread safepointId:ulong totalThreadCount:int
            jniCriticalThreadCount:int
        jdk.SafepointCleanup duration eventThread safepointId:ulong
        jdk.SafepointEnd duration eventThread safepointId:ulong
        jdk.SafepointStateSynchronization duration eventThread safepointId:ulong initialThreadCount:int
            runningThreadCount:int iterations:int
    """,
}
