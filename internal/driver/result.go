package driver

// Result is a CUresult: what a driver call answers.
type Result int32

// Sticky reports whether r means that the context it came from has failed for good: every later call answers the same.
func (r Result) Sticky() bool {
	switch r {
	case ErrorECCUncorrectable, ErrorNVLinkUncorrectable, ErrorHardwareStackError, ErrorIllegalInstruction,
		ErrorMisalignedAddress, ErrorInvalidAddressSpace, ErrorInvalidPC, ErrorIllegalAddress, ErrorLaunchTimeout,
		ErrorAssert, ErrorLaunchFailed, ErrorContained, ErrorTensorMemoryLeak, ErrorExternalDevice:
		return true
	}
	return false
}

// Name is the driver's name for r, or "" for a number that it does not have here.
func (r Result) Name() string { return resultNames[r] }
